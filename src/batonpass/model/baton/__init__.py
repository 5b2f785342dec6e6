"""The baton that travels with a handoff, and the state that outlives a session."""
