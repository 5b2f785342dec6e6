"""`batonpass session`."""
