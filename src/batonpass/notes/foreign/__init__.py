"""What other tools say about lines: read as hearsay, and written in their formats on request."""
