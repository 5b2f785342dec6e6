"""What a person requires of handoffs and calls."""
