"""Root runs and sessions: started, resumed, and what one leaves to the next."""
