"""Frameworks and programs that people already use: what they keep and do, in the words of the ledger."""
