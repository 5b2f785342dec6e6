"""Equal lines around what came or went: which of them a diff could have taken instead."""

import pytest

from batonpass.notes.line_slides import slides, twins


@pytest.mark.parametrize(
    ("lines", "moved", "start", "end", "found"),
    [
        ("a}x}b", "}x", 1, 3, [4]),
        ("a}x}b", "x}", 2, 4, [2]),
        ("a}b", "}x", 1, 1, [2]),
        ("aaaa", "a", 3, 4, [1, 2, 3]),
        ("axyxyxyxyb", "xy", 1, 3, [4, 5, 6, 7, 8, 9]),
        ("abc", "b", 1, 2, []),
        ("", "x", 0, 0, []),
    ],
    ids=[
        "a brace below what came",
        "a brace above it",
        "a brace that stayed where something went",
        "all lines are equal",
        "what came repeats itself",
        "nothing is equal",
        "everything went",
    ],
)
def test_lines_that_could_be_meant_are_found(lines: str, moved: str, start: int, end: int, found: list[int]) -> None:
    """Both ways, and beyond what came or went if it repeats itself."""
    assert found == sorted(slides(list(lines), list(moved), start, end))


def test_each_has_the_line_that_it_can_be_taken_for() -> None:
    """The twin of a line below is as far above as the block is long."""
    assert [(4, 2)] == list(twins(list("a}x}b"), 1, 3))
    assert [(2, 4)] == list(twins(list("a}x}b"), 2, 4))
