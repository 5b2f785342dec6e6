"""What happens: one file an act, from its first check to its last receipt.

context    the ledger, and the runs that are open in this process
run_state  a run at work
start, offer, accept, call, close, retry, settle, revoke
effects    what a call changed in a file
"""
