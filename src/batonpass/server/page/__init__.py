"""The page, where people look and decide in a browser. It asks `records` and `accounts`, and decides nothing."""
