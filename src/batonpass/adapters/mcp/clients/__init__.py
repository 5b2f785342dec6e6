"""Clients' settings: which servers they start, put behind the proxy and taken out again."""
