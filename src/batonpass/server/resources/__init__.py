"""Reading over HTTP, all of it through `records`, `accounts` and `Relay`, which every other door reads through."""
