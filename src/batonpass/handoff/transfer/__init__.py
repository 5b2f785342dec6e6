"""One handoff, from any door: it is offered, held, accepted, closed, judged and tried again."""
