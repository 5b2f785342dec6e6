"""Following the lines of a file through recorded changes, to what the file is now."""
