"""What git knows: of a file, of the work tree, and of commits that repeat others."""
