"""The recipients of receipts, read back: webhooks."""
