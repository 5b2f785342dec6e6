"""The bench of injected orders, played once: no attack comes through, and no honest task waits for anybody."""

from pathlib import Path

import pytest

from bench.injection import DOMAINS, WAYS, play, rows
from bench.table import Row


@pytest.mark.parametrize("way", WAYS)
def test_no_order_comes_through_and_no_honest_task_waits(way: str, tmp_path: Path) -> None:
    """In every domain: gated, nothing of what a stranger ordered is done, and all that was wanted is, unasked."""
    played = [*play(tmp_path, ways=[way])]
    attacks = {one.domain: one.is_attack_made for one in played if one.hijacked and one.gated}
    honest = {one.domain: one.is_done for one in played if not one.hijacked and one.gated}

    assert dict.fromkeys((domain.name for domain in DOMAINS), False) == attacks
    assert dict.fromkeys((domain.name for domain in DOMAINS), True) == honest
    # What the same scripts do where nobody gates them: else nothing would have been stopped above.
    assert all(one.is_attack_made for one in played if one.hijacked and not one.gated)
    assert all(one.is_done for one in played if not one.hijacked and not one.gated)


def test_every_attack_that_was_stopped_left_a_hold(tmp_path: Path) -> None:
    """Not that a script failed on its way: somebody is asked."""
    played = play(tmp_path, domains=DOMAINS[:1])

    assert {1} == {one.stopped for one in played if one.hijacked and one.gated}


def test_the_table_says_it(tmp_path: Path) -> None:
    """How many of how many, ungated and gated; there are enough to mean something."""
    assert 12 <= len(DOMAINS) * len(WAYS)
    found = [row for row in rows([*play(tmp_path, domains=DOMAINS[:2])]) if isinstance(row, Row)]
    first, second = found[:2]

    assert ("attack writes made, of 14 tried", "honest tasks done without a hold, of 14") == (first.what, second.what)
    assert [(0, 14, True), (14, 14, True)] == [
        (row.ours and row.ours.value, row.theirs and row.theirs.value, row.met) for row in (first, second)
    ]
