"""The handoff itself: what runs and handoffs can do, written once, and the face that synchronous programs see."""
