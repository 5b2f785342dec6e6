"""Taint, told: where a text from outside entered, the shortest way from there to something, and all that it reached."""
