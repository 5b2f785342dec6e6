"""Why something was allowed, denied or held."""
