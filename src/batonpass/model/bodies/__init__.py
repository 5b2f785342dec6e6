"""The bodies of receipts, one class for each kind."""
