"""Receipts read back as typed values, in one place, so that no command has to read a receipt itself."""
