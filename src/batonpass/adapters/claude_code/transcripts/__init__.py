"""Reads the transcripts of Claude Code."""
