"""Tools: their declarations, their arguments and results, and the context of a call."""
