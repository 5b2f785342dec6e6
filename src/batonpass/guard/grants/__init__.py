"""Guards for grants: does a grant cover a call, is its chain authentic, and is it still in force."""
