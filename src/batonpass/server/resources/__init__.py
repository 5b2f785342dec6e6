"""What can be read over HTTP, each through `records`, `accounts` and `Relay`, which every other door reads through."""
