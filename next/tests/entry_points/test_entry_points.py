"""The table of situations: every entry point gives the same verdict, in the same words, with the same receipts."""

import pytest

from batonpass.testing import SITUATIONS, Faults, FrozenClock, Stage, Told, a_relay, play
from tests.entry_points.columns import an_entry_point

ENTRY_POINTS = ("python", "async", "json lines", "own loop")


def told_by(entry_point: str, name: str) -> Told:
    """Play a situation at an entry point, on a ledger of its own, which is verified afterwards."""
    clock, faults = FrozenClock(), Faults()
    with a_relay(system=clock, faults=faults) as relay, an_entry_point(entry_point, relay) as acts:
        told = play(SITUATIONS[name].play, Stage(acts=acts, relay=relay, clock=clock, faults=faults))
        relay.verify()
    return told


@pytest.mark.parity("entry-point-table")
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize("name", SITUATIONS)
def test_an_entry_point_does_what_the_table_says(name: str, entry_point: str) -> None:
    """The verdict with its code and sentence, the kinds of receipts in their order, and what tools did."""
    situation = SITUATIONS[name]
    told = told_by(entry_point, name)

    assert situation.verdict == told.verdict
    assert situation.kinds == " ".join(told.kinds)
    assert situation.made == told.made


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_words_in_receipts_are_the_same_everywhere(name: str) -> None:
    """Reasons, errors and gaps do not tell through which entry point they came."""
    told = {entry_point: told_by(entry_point, name) for entry_point in ENTRY_POINTS}

    assert dict.fromkeys(ENTRY_POINTS, told["python"]) == told
