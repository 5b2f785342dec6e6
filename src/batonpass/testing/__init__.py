"""For tests, yours and ours: a clock that stands still, builders, and the suite that every store must pass."""

from batonpass.testing.builders import Scribe, a_scribe, a_small_tree
from batonpass.testing.clock import FrozenClock

__all__ = ["FrozenClock", "Scribe", "a_scribe", "a_small_tree"]
