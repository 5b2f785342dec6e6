"""Grants and their parts: resources, patterns, conditions, limits, permits, scopes and signed statements."""
