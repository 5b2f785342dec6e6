"""Keys: making them, keeping them, signing and checking with them."""
