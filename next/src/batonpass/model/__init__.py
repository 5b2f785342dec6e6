"""What is written, as values: ids, kinds of receipts, rows, grants, batons. Nothing here reads or writes anything.

ids, values        what everything else is made of
lifecycle          the states of a handoff and the one table of transitions
bodies, receipt    the closed list of kinds, and the envelope that each of them has
rows, change       the derived rows, and what one receipt expects of them and makes of them
content, grants    what stands beside a receipt; what a run may use and may delegate
items, baton       what one agent tells the next
"""
