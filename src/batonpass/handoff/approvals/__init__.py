"""What waits for a person: what they are shown, whether it is theirs to decide, and the decision."""
