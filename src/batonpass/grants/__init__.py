"""Signed grants: issuing them, proving a call with one, and verifying that proof with only the root key."""
