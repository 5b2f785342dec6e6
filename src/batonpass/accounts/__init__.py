"""The answers people ask for: the account of a handoff, the trail of a tree, the blame for a line, why, and taint."""
