"""Adapters for programs that people already use: their events and records become receipts."""
