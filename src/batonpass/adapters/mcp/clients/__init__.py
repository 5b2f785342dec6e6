"""Puts the servers in clients' settings behind the proxy, and takes them out again."""
