"""The demonstrations: what Batonpass records, verifies and finds, in a few seconds."""
