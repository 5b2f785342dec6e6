"""The way of every receipt: place, sign, append, remember the head."""
