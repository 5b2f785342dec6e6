"""The ledger in one SQLite file, shared by any number of threads and processes."""
