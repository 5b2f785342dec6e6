"""Frozen values: what Batonpass talks about. No I/O, standard library only."""
