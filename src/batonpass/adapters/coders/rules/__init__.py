"""The rules of `batonpass.toml` for Claude Code's agents, and the actions of its tools in terms of grants."""
