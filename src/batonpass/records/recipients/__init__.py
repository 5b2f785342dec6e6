"""What leaves this ledger by itself, read back: the webhooks that are told what is recorded."""
