"""What commands print: words, tables, sheets, bars and exit codes."""
