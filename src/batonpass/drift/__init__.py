"""What changes over weeks: roll-ups, the Agent Stability Index, what changed in words, alarms, fleet memory."""
