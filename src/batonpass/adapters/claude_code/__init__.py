"""Claude Code: reads its transcripts and records its sessions through hooks. See docs/spec/claude-code.md."""
