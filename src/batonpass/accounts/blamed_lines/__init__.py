"""Whole files as people and editors see them: who wrote each line, as rows, for git's readers, in short, and in sum."""
