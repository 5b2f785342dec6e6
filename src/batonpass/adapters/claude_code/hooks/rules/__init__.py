"""What `batonpass.toml` says of Claude Code's agents, and what its tools do in the words of a grant."""
