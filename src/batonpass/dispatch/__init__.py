"""Dispatching: workers that claim what waits, and hold it for as long as they work on it."""
