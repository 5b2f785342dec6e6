"""Handoffs between agents: the whole state carried across, only what was granted, a signed record."""
