"""Keys: making them, keeping them, signing with them and checking signatures."""
