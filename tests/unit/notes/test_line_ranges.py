"""Line numbers as text, and the prints of lines with their neighbours."""

import pytest

from batonpass.errors import InvalidValueError
from batonpass.notes.line_prints import prints_of, read_prints, write_prints
from batonpass.notes.line_ranges import MOST_LINES, LineRanges


def test_lines_are_written_and_read_as_ranges() -> None:
    """What is written is read again, and no range is ever expanded."""
    ranges = LineRanges.of([9, 3, 4, 5, 12, 4])

    assert "3-5,9,12" == str(ranges)
    assert [3, 4, 5, 9, 12] == list(LineRanges.parse("3-5,9,12").within(100))
    assert [3, 4] == list(ranges.within(4))
    assert [False, True, True, False, True] == [number in ranges for number in (2, 3, 5, 8, 12)]
    assert (5, True, False) == (ranges.size, bool(ranges), bool(LineRanges.parse("")))
    assert MOST_LINES - 1 == LineRanges.parse(f"2-{MOST_LINES}").size


@pytest.mark.parametrize(
    "text", ["0", "5-3", "3,2", "3-5,5", "1-99999999", "a", "1,", "-1", "1-2-3", " 1", "\u0661"], ids=repr
)
def test_what_is_no_range_is_refused(text: str) -> None:
    """Numbers rise, start at 1, and are those of a file that somebody could have."""
    with pytest.raises(InvalidValueError):
        LineRanges.parse(text)


def test_a_line_has_a_print_with_each_neighbour() -> None:
    """Prints of some lines are those of the whole text, at their place."""
    lines = ["def f():", "    one = 1", "    return one", "", "def g():"]
    every = prints_of(lines)
    ranges = LineRanges.parse("2-3,5")

    found = read_prints(write_prints(lines, ranges), ranges)

    assert {2: (every[1], every[2]), 3: (every[2], every[3]), 5: (every[4], every[5])} == found


def test_white_space_does_not_change_a_print() -> None:
    """A formatter leaves prints as they are."""
    assert prints_of(["if x:", "y = 3"]) == prints_of(["if  x :", "\ty=3  "])


@pytest.mark.parametrize("text", ["", "AAAA", "AAAAAAAAAAAA", "%%%", "é"], ids=repr)
def test_prints_that_do_not_fit_are_refused(text: str) -> None:
    """Their number is that of the lines."""
    with pytest.raises(InvalidValueError):
        read_prints(text, LineRanges.parse("1-2"))
