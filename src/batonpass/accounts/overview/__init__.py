"""The first screen for a person: work that waits for somebody, and the runs of a task at a glance."""
