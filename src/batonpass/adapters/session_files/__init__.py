"""Reads the sessions that coding agents keep on disk: one module per agent, and shared parts."""
