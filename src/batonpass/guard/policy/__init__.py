"""Whether a policy lets a handoff or a call go on, and who else may."""
