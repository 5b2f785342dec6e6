"""What is done in a large ledger asks as often, and calls as much, as in a small one."""

from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import pytest

from bench import batons
from bench.gauge import Metered
from bench.growth import GROWN, Grown
from bench.ledgers import count_receipts, fill, fill_with_handoffs, scribe_of
from bench.tally import Counts, Tally


def counted(grown: Grown, home: Path) -> Counts:
    with Tally() as tally, batons.open_relay(home) as relay:
        act = grown.make(relay, home)
        for _ in range(3):
            act()
        readings = [tally.read()]
        for _ in range(8):
            act()
            readings.append(tally.read())
    # Random characters and the forms of known ids are refilled now and then, and the log is grown: the cheapest act has
    # none of it, and costs the same whenever it is counted.
    return min((after.since(before) for before, after in pairwise(readings)), key=attrgetter("calls"))


@pytest.mark.parametrize("grown", [pytest.param(grown, id=grown.name) for grown in GROWN])
def test_an_act_asks_no_more_in_a_larger_ledger(grown: Grown, tmp_path: Path) -> None:
    """Statements and calls of one act are the same before and after three thousand receipts of others."""
    before = counted(grown, tmp_path)
    with batons.open_relay(tmp_path) as relay:
        scribe = scribe_of(relay, tmp_path)
        fill_with_handoffs(scribe, 500)
        fill(scribe, 500)
        assert count_receipts(scribe) > 3_000
    after = counted(grown, tmp_path)

    assert before.statements == after.statements
    assert abs(before.calls - after.calls) <= 3


def test_the_cheapest_quarter_counts() -> None:
    """What others do to the caches only makes an act dearer."""
    readings = iter([0, 9, 0, 1, 0, 2, 0, 3])
    metered = Metered(lambda: None, lambda: next(readings))
    for _ in range(4):
        metered()

    assert 2 == metered.cheap()
