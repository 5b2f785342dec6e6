"""Reads files that people name: traces of frameworks, checkpoints, telemetry, and lines of events."""
