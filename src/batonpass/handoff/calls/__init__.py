"""One call, from any door: it is checked in one order, and recorded before and after it is made."""
