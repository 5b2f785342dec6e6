"""Keeps the ledger. The only package that talks to a database; the rest of the code uses `batonpass.store.port`."""
