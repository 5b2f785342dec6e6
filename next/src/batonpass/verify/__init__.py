"""Verification: every receipt once, in the order of the ledger, and the first thing that is wrong by name.

verifier   the numbered steps over one view, and the evidence of what was checked
facts      what the receipts so far have established
words      what was checked, and what was not, for people
parts      which contents each kind of receipt has

`docs/spec/verification.md` says what each step checks, and what is not claimed.
"""
