"""Who wrote the lines of a file: recorded changes, replayed to what the file is now; never a guess."""
