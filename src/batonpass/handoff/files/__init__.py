"""Files of a work tree: which ones a call changed, which ones no call may touch, and where a path leads."""
