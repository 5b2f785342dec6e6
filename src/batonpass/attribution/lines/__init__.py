"""Follows the lines of a file through recorded changes to its present content."""
