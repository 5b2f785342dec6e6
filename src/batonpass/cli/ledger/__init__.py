"""`batonpass ledger`."""
