"""The kinds of finding: a module for each theme; each kind is found by one function over one tree."""
