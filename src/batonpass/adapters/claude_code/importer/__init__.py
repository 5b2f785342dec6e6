"""Imports transcripts into a ledger."""
