"""Frozen values for everything that Batonpass talks about. No I/O; only the standard library and msgspec."""
