"""The building blocks of all other values: ids, checks, kinds, labels, states."""
