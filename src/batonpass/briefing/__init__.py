"""A baton rendered for whoever takes it over: what to do in one part, what came from elsewhere in another."""
