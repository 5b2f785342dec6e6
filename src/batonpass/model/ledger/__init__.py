"""What a ledger holds: receipts and their contents, streams, runs, keys, seals; and what one receipt changes."""
