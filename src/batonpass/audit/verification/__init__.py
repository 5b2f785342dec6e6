"""Verifies a ledger in the numbered steps of docs/spec/verification.md, from the signed bytes up."""
