"""A language server: who wrote a line, where people look at it. It only reads."""
