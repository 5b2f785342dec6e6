"""Guards for the policy: whether a handoff or a call goes on, waits or is denied, and who may approve it."""
