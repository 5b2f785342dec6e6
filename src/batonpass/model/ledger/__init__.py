"""The contents of a ledger: receipts, contents, streams, runs, keys, seals; and the changes that a receipt makes."""
