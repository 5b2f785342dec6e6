"""The way of one call, from any door: judged in one order, recorded before and after."""
