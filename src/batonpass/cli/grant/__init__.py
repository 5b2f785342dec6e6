"""`batonpass grant`."""
