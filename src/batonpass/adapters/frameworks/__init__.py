"""The common part of the adapters for agent frameworks: one agent at work is one run, in every framework."""
