"""Files of a work tree: which a call changed, which no call may touch, and where the text of a path leads."""
