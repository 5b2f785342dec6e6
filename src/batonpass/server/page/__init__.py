"""The page: what people look at and decide on in a browser. It asks `records` and `accounts`, and decides nothing."""
