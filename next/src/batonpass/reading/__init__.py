"""From receipts to values: what happened in a run, what a handoff carried, who gave what to whom. It decides nothing.

history    the calls, children and items of runs, folded
batons     what an agent was handed, read from the receipts above it
grants     the terms of each hop
handoffs   a handoff and a tree, as people look at them
"""
