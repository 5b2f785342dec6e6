"""Turns: everybody is measured under the same conditions."""

from functools import partial
from itertools import pairwise, permutations

from bench.measure import time_in_turns

NAMES = ("handoff", "call", "raw", "peer")


def test_everybody_comes_after_everybody_else() -> None:
    """Caches and disk are as the one before left them, so nobody has the same neighbour in every turn."""
    order: list[str] = []
    time_in_turns({name: partial(order.append, name) for name in NAMES}, turns=40, acts=1)

    assert {*permutations(NAMES, 2)} <= {*pairwise(order)}


def test_the_first_turn_does_not_count() -> None:
    """It warms up; of all others each act is a sample."""
    taken = time_in_turns({name: lambda: None for name in NAMES}, turns=3, acts=2)

    assert dict.fromkeys(NAMES, 6) == {name: len(samples.values) for name, samples in taken.items()}
