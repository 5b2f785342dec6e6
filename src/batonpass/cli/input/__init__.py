"""What commands take: options, ids, passphrases, and the ledger that is meant."""
