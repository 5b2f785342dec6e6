"""The demonstrations: Batonpass records, verifies and finds things, in a few seconds."""
