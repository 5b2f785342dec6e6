"""Finds the files that a call changed: looks at the work tree before and after, and separates overlapping calls."""
