"""Statements of the relay about things with names of their own, found by remarks."""
