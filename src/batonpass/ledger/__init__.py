"""The ledger: recording signed receipts in streams, enrolling keys, erasing content, and sealing."""
