"""Questions to the ledger: is it whole, who did what, and under whose authority."""
