"""Tools for tests: a frozen clock, builders, the conformance suite for stores, and the suite for doors."""

from batonpass.testing.builders import Scribe, a_scribe, a_small_tree
from batonpass.testing.clock import FrozenClock

__all__ = ["FrozenClock", "Scribe", "a_scribe", "a_small_tree"]
