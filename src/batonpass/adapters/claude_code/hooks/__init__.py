"""Recording a session of Claude Code while it happens, by its hooks. What we rely on is in docs/spec/claude-code.md."""
