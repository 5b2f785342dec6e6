"""Follows one session event by event: its state, and the receipts that each event becomes."""
