"""What a call changed, in hunks: they make the new text of the old one, and no text can draw the search out."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from batonpass.runtime.effects import find_hunks

_EQUAL_LINES = ["x"] * 199  # as many as are all compared with each other


def _apply(old: list[str], hunks: Iterable[Any]) -> list[str]:
    made: list[str] = []
    at = 0
    for hunk in hunks:
        made += [*old[at : hunk.at - 1], *hunk.added]
        at = hunk.at - 1 + hunk.removed
    return made + old[at:]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            [f"{'kept' if number % 2 else 'old'} {number}" for number in range(9000)],
            [f"{'kept' if number % 2 else 'new'} {number}" for number in range(9000)],
            4500,
            id="every second of 9,000 lines is another",
        ),
        pytest.param(
            [f"{number % 100}" for number in range(9000)],
            [f"{number % 100}" if number % 2 else f"new {number}" for number in range(9000)],
            1,
            id="every second of 9,000 lines is another, and none stands once on both sides",
        ),
        pytest.param(
            [line for number in range(1000) for line in ("x", f"old {number}")],
            ["y", *_EQUAL_LINES],
            1,
            id="equal lines",
        ),
        pytest.param(
            ["old", *(f"line {number}" for number in range(9000)), "old"],
            ["new", *(f"line {number}" for number in range(9000)), "new"],
            2,
            id="both ends of a long file",
        ),
        pytest.param(
            ["old", *(f"line {number}" for number in range(9000))],
            ["new", *(f"line {number}" for number in range(1, 9000)), "line 0"],
            2,
            id="a line that moved to the end of a long file",
        ),
        pytest.param(
            ["a", "x", "b", "x", "c"], ["1", "x", "2", "x", "3"], 3, id="a short text is compared line by line"
        ),
    ],
)
def test_the_search_for_hunks_is_bounded(old: list[str], new: list[str], expected: int) -> None:
    """In a long text only lines that stand once on both sides are kept; between two of them there is one hunk."""
    hunks = find_hunks(tuple(old), tuple(new))

    assert expected == len(hunks)
    assert new == _apply(old, hunks)


@pytest.mark.parametrize("lines", [10, 300, 3000])
def test_hunks_make_the_new_text(lines: int) -> None:
    """Of texts with repeated, moved and replaced lines, the hunks applied to the old one are the new one."""
    chance = random.Random(lines)
    for kinds in (2, 20, 10_000):
        old = [str(chance.randrange(kinds)) for _ in range(lines)]
        new = list(old)
        for _ in range(lines // 5):
            new.insert(chance.randrange(len(new)), new.pop(chance.randrange(len(new))))
            new[chance.randrange(len(new))] = str(chance.randrange(kinds))

        assert new == _apply(old, find_hunks(tuple(old), tuple(new)))
