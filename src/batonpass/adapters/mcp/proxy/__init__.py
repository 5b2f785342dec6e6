"""The MCP proxy: it stands between one client and one server, and judges and records every call."""
