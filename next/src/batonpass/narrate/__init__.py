"""What happened, in words: the one wording. Terminal and page paint its lines, and have no sentences of their own.

tokens     words with tones, lines; texts that others wrote, made visible; times and durations
receipts   a receipt in a line
work       a call, a run, a handoff, a tree, a retry
"""
