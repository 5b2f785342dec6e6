"""Everything a ledger knows about one handoff."""
