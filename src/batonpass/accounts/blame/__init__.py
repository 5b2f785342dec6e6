"""Blame: who wrote the lines of a file, a hunk, an effect, an artifact or some words."""
