"""The authors of lines, kept in git notes: written by the machine that recorded them, read in any clone."""
