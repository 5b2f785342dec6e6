"""The requirements of a person for handoffs and calls."""
