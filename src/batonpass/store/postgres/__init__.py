"""The ledger in a PostgreSQL database, shared by relays on any number of machines."""
