"""A2A: agents of other frameworks send their tasks here, and each task is a handoff in the ledger.

Only modules that `mount.py` imports at the first request know the SDK: it takes longer to import than the server to
start.
"""
