"""Shared state of all use cases: the desk, the state, bounds and taint of a run, and the membership of a relay."""
