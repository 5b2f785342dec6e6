"""Claims of other tools about lines: read as hearsay, and written in their formats on request."""
