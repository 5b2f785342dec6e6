"""The MCP server: the acts and reads of the HTTP interface as tools, resources and prompts, over stdio and `/mcp`."""
