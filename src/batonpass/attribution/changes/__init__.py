"""Changes of files as values: hunks, marks of who wrote a line, and both as bytes."""
