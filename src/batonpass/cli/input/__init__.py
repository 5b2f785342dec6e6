"""The input of commands: options, ids, passphrases, and the chosen ledger."""
