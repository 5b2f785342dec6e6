"""The trail: a whole tree as it happened, as text, page or chart."""
