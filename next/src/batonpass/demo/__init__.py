"""The demonstration: a quarterly analysis whose last agent is killed, and goes on. Real processes, nothing is faked.

analysis   the tools and the agents
drafter    the last agent, as a program of its own
story      what is done to them, and what the record says of it, step by step
"""
