"""Rows of the table: what was wanted, what must hold, and what a busy disk hides."""

import pytest

from bench.table import Figure, Goal, Row, Unit, at_least, at_most, at_rate, within, write_markdown

FACTS = {
    "date": "2026-11-16",
    "short": False,
    "seconds": 1,
    "machine": dict.fromkeys(("cores", "processor", "kernel", "filesystem", "python", "sqlite", "load"), "x"),
}


def a_row(ours: float, goal: Goal, *, theirs: float | None = 1.0, quickest: float = 1.0) -> Row:
    summary = None if theirs is None else {"p50": theirs, "min": quickest}
    unit = Unit.SECONDS
    return Row(
        what="handoff",
        ours=Figure(ours, unit),
        against="append",
        theirs=None if theirs is None else Figure(theirs, unit, summary),
        goal=goal,
    )


def verdict(row: Row) -> str:
    (line,) = [line for line in write_markdown(FACTS, [row]).splitlines() if line.startswith("| handoff")]
    return line.rpartition(" | ")[2].removesuffix(" |")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(a_row(6.0, at_most(6, must=8)), "yes", id="a goal is met at its very bound"),
        pytest.param(a_row(7.9, at_most(6, must=8)), "what must hold", id="beyond the goal, within what must hold"),
        pytest.param(a_row(8.1, at_most(6, must=8)), "**no**", id="beyond both"),
        pytest.param(a_row(8.1, at_most(6)), "**no**", id="a goal alone is what must hold"),
        pytest.param(a_row(4.0, at_least(4.5, must=3.3)), "what must hold", id="of rates, what must hold is less"),
        pytest.param(a_row(3.2, at_least(4.5, must=3.3)), "**no**", id="of rates, less than what must hold"),
        pytest.param(a_row(1_000, at_rate(1_200, must=900)), "what must hold", id="a figure of our own, not a ratio"),
        pytest.param(a_row(0.0016, within(0.001, must=0.0015), theirs=None), "**no**", id="compared with nothing"),
        pytest.param(a_row(12.0, at_most(6, must=8), theirs=4.0), "disk busy", id="met, but by a disk that was busy"),
        pytest.param(a_row(28.0, at_most(6, must=8), theirs=4.0), "disk busy", id="a busy disk hides this as well"),
        pytest.param(a_row(40.0, at_most(6, must=8), theirs=4.0), "**no**", id="a busy disk excuses no miss"),
        pytest.param(a_row(1.0, at_most(6), theirs=None), "", id="a ratio to nothing is none"),
    ],
)
def test_a_row_says_whether_its_goal_is_met(row: Row, expected: str) -> None:
    """A goal is met, or at least what must hold until it is, or neither."""
    assert expected == verdict(row)


def test_a_goal_is_told_with_what_must_hold() -> None:
    """A reader sees both bounds, in the unit of the row."""
    goals = (at_most(6, must=8), at_rate(1_200, must=900), within(0.25, must=0.4), within(0.1))

    assert ["≤ 6 × (must: 8)", "≥ 1,200/s (must: 900)", "≤ 250 ms (must: 400)", "≤ 100 ms"] == [
        goal.words for goal in goals
    ]
