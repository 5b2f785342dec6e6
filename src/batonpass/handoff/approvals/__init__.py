"""Holds and rulings: the sheet that an approver reads, whether they may approve, and the ruling itself."""
