"""Frozen values: what Batonpass talks about. No I/O; the standard library and msgspec only."""
