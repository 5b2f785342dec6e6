"""Claude Code: its transcripts, read as they lie on disk. What we rely on is in docs/spec/claude-code.md."""
