"""Grants with keys: issuing them, proving a call with one, and verifying it where nothing but the root key is known."""
