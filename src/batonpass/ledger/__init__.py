"""The ledger: streams of signed receipts, sealed."""
