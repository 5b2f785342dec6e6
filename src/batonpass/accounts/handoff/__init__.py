"""All that a ledger tells of one handoff."""
