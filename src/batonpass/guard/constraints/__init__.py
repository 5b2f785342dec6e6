"""Guards for typed constraints, and for the conditions of decisions."""
