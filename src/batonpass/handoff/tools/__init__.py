"""Tools: what is declared about them, what they are given, what they return, and the call that they are in."""
