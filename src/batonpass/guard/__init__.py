"""Guards: each decides one question about values, says why, and touches nothing."""
