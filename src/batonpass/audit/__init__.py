"""Asking the ledger: is it whole, who did what, and under whose authority."""
