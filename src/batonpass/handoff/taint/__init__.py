"""Content from outside: how it reaches a run, and the files that a tainted run leaves."""
