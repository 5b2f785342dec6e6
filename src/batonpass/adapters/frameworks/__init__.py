"""What the adapters of agent frameworks share: one agent at work is one run, whatever framework drives it."""
