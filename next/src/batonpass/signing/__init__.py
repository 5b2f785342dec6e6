"""Keys: Ed25519, the keys of runs that follow from the relay's secret, and the files that keep secrets."""
