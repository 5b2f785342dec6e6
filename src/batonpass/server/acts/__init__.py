"""Acting over HTTP, each by the use case that every other door calls."""
