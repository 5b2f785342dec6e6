"""One module for each agent whose sessions can be read."""
