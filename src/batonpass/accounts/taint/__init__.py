"""Taint: where content from outside entered, its shortest way to something, and everything it reached."""
