"""`batonpass doctor`."""
