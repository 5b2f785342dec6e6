"""Whether typed constraints and the conditions of decisions hold."""
