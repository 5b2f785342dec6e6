"""Receipts in the words of other systems: events, spans, metrics and provenance, and without content unless asked."""
