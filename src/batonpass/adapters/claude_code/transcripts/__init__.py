"""Transcripts of Claude Code: where they lie, and what they say, as values."""
