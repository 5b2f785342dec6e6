"""The objects that synchronous programs use: `LiveRun`, `LiveHandoff` and `LiveCall`."""
