"""Grants of runs: given with an offer, bound to a key on acceptance, limited, renewed and revoked."""
