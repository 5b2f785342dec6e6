"""What a person sees first: what needs somebody, and the runs of a task at a glance."""
