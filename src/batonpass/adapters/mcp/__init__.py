"""The Model Context Protocol: a proxy that records calls between clients and servers, and the clients' settings."""
