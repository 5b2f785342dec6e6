"""Whether grants cover a call, prove what they say, and stand."""
