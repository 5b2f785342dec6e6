"""The output of commands: text, tables, sheets, progress bars and exit codes."""
