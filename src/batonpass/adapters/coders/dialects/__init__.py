"""How each coding agent words its events and takes our answers: one table, one module for each agent."""
