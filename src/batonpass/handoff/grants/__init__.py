"""Grants of runs: given at an offer, bound at an acceptance, limited, renewed, revoked."""
