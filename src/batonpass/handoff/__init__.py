"""The handoff itself: the acts of runs and handoffs, written once, and the face that synchronous programs see."""
