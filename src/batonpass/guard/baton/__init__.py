"""Guards for batons: whether a receiver can act on one, or something is missing, damaged, unreachable or unclear."""
