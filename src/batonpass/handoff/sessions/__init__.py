"""Root runs and sessions: starting them, resuming them, and the state that one leaves to the next."""
