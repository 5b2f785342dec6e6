"""The Model Context Protocol: a proxy that records the calls of any client to any server, and the clients' settings."""
