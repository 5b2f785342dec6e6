"""Records sessions of Claude Code live, through its hooks. See docs/spec/claude-code.md."""
