"""`batonpass serve` and `batonpass token`: a server for this ledger, and who may come in."""
