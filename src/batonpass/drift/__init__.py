"""Changes over weeks: roll-ups, the Agent Stability Index, changes in words, alarms, fleet memory."""
