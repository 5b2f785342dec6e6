"""`batonpass trail`, and receipts as they come."""
