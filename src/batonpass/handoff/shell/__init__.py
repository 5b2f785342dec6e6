"""Commands: what their text names, reads and writes; and running one."""
