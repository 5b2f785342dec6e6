"""Review: what a person should look at after a run, with the receipts that prove it."""
