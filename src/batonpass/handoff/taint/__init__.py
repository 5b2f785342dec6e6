"""Taint: how content from outside reaches a run, the files that a tainted run writes, and who endorses them."""
