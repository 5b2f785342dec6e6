"""What every use case has at hand: the desk, what a run knows and is bound by, and a relay's place in a ledger."""
