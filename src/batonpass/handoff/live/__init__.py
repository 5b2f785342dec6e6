"""The faces that synchronous programs see: LiveRun, LiveHandoff and LiveCall."""
