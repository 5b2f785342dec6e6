"""What happened, told: the account of a handoff, the trail of a tree, the blame for a line, and why."""
