"""The way of one handoff, from any door: offered, held, taken, closed, tried again."""
