"""A baton rendered for its receiver: instructions in one part, data from elsewhere in another."""
