"""Every act once, and the thin handles over it.

acts         what an act is: request, answer, who may, how it is repeated; the table
runs, handoffs, calls, ledgers   a module of acts a noun
port         does acts, here: roles, idempotency
handles      Relay, Run, Handoff · aio: made from it by `tools/generate_async.py`
problems     errors as JSON, there and back · json_lines: the table over stdin and stdout
"""
