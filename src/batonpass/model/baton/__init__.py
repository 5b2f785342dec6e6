"""What travels with a handoff, and what outlives a session."""
