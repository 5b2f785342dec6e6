"""`batonpass blame`."""
