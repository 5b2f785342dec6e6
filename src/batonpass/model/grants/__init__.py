"""What may be done: resources, patterns, conditions, limits, permits, scopes and grants."""
