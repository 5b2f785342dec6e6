"""`batonpass trail`, and live events."""
