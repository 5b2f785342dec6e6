"""Whether a baton can be acted on: what is missing, broken, out of reach or pointing nowhere."""
