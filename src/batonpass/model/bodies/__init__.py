"""What receipts say, one value for each kind."""
