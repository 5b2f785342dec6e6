"""A whole tree as it happened: read, walked, and told as text, page or chart."""
