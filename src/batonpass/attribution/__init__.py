"""Finds out which recorded change wrote a line, and which files a call changed."""
