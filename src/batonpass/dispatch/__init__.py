"""Workers: they claim waiting handoffs, run their agents, and renew their leases meanwhile."""
