"""File changes as values: hunks, marks that say who wrote a line, and their encoding as bytes."""
