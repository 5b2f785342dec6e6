"""What is done again and again asks the store as often as the first time."""

from pathlib import Path

import pytest

from bench import batons
from bench.repeats import REPEATED, Repeated
from bench.tally import Tally


@pytest.mark.parametrize("repeated", [pytest.param(repeated, id=repeated.name) for repeated in REPEATED])
def test_the_tenth_time_asks_no_more_than_the_third(repeated: Repeated, tmp_path: Path) -> None:
    """SQL statements do not grow with what was done before: neither retries nor siblings are looked at one by one."""
    asked = []
    with Tally() as tally, batons.open_relay(tmp_path) as relay:
        act = repeated.make(relay)
        for _ in range(10):
            before = tally.read().statements
            act()
            asked.append(tally.read().statements - before)

    assert asked[2] == asked[9]


def test_what_siblings_reported_is_taken_apart_once(tmp_path: Path) -> None:
    """A result that travels with every later handoff costs each of them a few calls, and not fifty."""
    made = []
    with Tally() as tally, batons.open_relay(tmp_path) as relay:
        lead = batons.start_lead(relay)
        for number in range(41):
            before = tally.read().calls
            with batons.offer(lead):
                pass
            made.append(tally.read().calls - before)
            with batons.offer(lead) as child:
                child.report(f"Batch {number} is done, and 14 tests pass.", open_questions=["Is it all?"])

    assert 8 * 40 > made[40] - made[1]
