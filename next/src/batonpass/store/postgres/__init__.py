"""The ledger in one PostgreSQL database."""
