"""Who wrote it: lines of a file, hunks, effects, artifacts and words."""
