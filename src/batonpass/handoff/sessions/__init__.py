"""Root runs and sessions: starting them, resuming them, and what one leaves to the next."""
