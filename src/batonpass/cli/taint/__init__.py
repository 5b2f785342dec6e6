"""`batonpass taint`."""
