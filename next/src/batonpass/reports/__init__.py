"""Answers about what was recorded: they read, and write nothing.

blame        who wrote a line of a file, under which grant, and for whom
blame_words  the same in words
"""
