"""What is known about lines, kept in git notes: written by the machine that recorded it, read in any clone."""
