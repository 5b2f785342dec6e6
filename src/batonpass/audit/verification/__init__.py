"""Verification in the numbered steps of docs/spec/verification.md."""
