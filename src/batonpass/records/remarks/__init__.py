"""What receipts of the relay say about things with names of their own, found by remarks."""
