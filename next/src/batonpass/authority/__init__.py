"""Who may do what: grants."""
