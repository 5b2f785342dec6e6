"""Which lines an unrecorded change left alone, case by case: the same words are not always the same line."""

import pytest

from batonpass.attribution.alignment import align

A = "first = read_first_table()"
B = "second = read_second_table()"
C = "third = read_third_table()"


@pytest.mark.parametrize(
    ("old", "new", "writers", "expected"),
    [
        pytest.param([A, B], [A, C, B], "xx", {0: 0, 2: 1}, id="a line between two that stay"),
        pytest.param([A, B, C], [C, A, B], "xxx", {1: 0, 2: 1}, id="a line that moved past two is in no old place"),
        pytest.param([A, "}", B], [A, "}", B, C], "xxx", {0: 0, 1: 1, 2: 2}, id="a brace between two that stay"),
        pytest.param([A, "}"], [B, "}"], "xx", {1: 1}, id="a brace at the end, where one was and one is"),
        pytest.param([A, "}", B], [A, B, "}"], "xxx", {0: 0, 1: 2}, id="a brace that went past a line is a new one"),
        pytest.param(
            [A, "}", B], [A, "}", "}", B], "xxx", {0: 0, 3: 2}, id="of two braces, one new: nobody knows which"
        ),
        pytest.param([A, "}", "}", B], [A, "}", B], "xyzx", {0: 0, 2: 3}, id="of two braces, one gone: whose is left?"),
        pytest.param(
            [A, "}", "}", B], [A, "}", B], "xyyx", {0: 0, 1: 1, 2: 3}, id="of two braces of one writer, one gone"
        ),
        pytest.param([A, A], [A], "xy", {}, id="of two equal lines of two writers, one gone"),
        pytest.param([A, None, B], [A, "}", B], "xxx", {0: 0, 2: 2}, id="a brace where the words are not known"),
        pytest.param([A, "}", None, B], [A, "}", C, B], "xxxx", {0: 0, 3: 3}, id="a brace beside unknown words"),
        pytest.param(["import os"], ["x", "import os", "y"], "x", {}, id="a line that everybody types"),
        pytest.param(["k = 5"], ["k = 5", "k = 6"], "x", {0: 0}, id="a short line where it was"),
        pytest.param([], [A], "", {}, id="nothing before"),
        pytest.param([A], [], "x", {}, id="nothing after"),
    ],
)
def test_a_line_is_kept_if_every_account_of_the_change_keeps_it(
    old: list[str | None], new: list[str], writers: str, expected: dict[int, int]
) -> None:
    """New line -> old line, and no pair where another account would have another."""
    assert expected == align(old, new, writers)
