"""What all other values are made of: ids, checks, kinds, labels, states."""
