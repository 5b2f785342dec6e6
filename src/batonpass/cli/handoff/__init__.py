"""`batonpass handoff`: one module for each command or part of the screen."""
