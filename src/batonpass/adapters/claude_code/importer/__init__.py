"""Bringing transcripts into a ledger, once."""
