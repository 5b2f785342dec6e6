"""Brings the sessions of coding agents into a ledger, whichever agent kept them."""
