"""Shell commands: which files their text names, reads and writes, and running one."""
