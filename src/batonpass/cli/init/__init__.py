"""`batonpass init`."""
