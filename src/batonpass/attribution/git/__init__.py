"""Questions to git: about a file, about the work tree, and about commits that repeat others."""
