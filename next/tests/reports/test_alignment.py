"""Which lines an unrecorded change left alone, case by case: the same words are not always the same line."""

import pytest

from batonpass.attribution.alignment import align

A = "first = read_first_table()"
B = "second = read_second_table()"
C = "third = read_third_table()"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param([A, B], [A, C, B], {0: 0, 2: 1}, id="a line between two that stay"),
        pytest.param([A, B, C], [C, A, B], {1: 0, 2: 1}, id="a line that moved past two is in no old place"),
        pytest.param([A, "}", B], [A, "}", B, C], {0: 0, 1: 1, 2: 2}, id="a brace between two that stay"),
        pytest.param([A, "}"], [B, "}"], {}, id="a brace beside a line that changed"),
        pytest.param([A, "}", B], [A, B, "}"], {0: 0, 1: 2}, id="a brace that went past a line is a new one"),
        pytest.param([A, "}", B], [A, "}", "}", B], {0: 0, 3: 2}, id="of two braces, one new: nobody knows which"),
        pytest.param([A, "}", "}", B], [A, "}", B], {0: 0, 2: 3}, id="of two braces, one gone: which is left?"),
        pytest.param([A, A], [A], {}, id="of two equal lines, one gone"),
        pytest.param([A, None, B], [A, "}", B], {0: 0, 2: 2}, id="a brace where the words are not known"),
        pytest.param([A, None, B], [A, None, B], {0: 0, 2: 2}, id="words that are known on neither side"),
        pytest.param(["import os"], ["x", "import os", "y"], {}, id="a line that everybody types"),
        pytest.param([], [A], {}, id="nothing before"),
        pytest.param([A], [], {}, id="nothing after"),
    ],
)
def test_a_line_is_kept_if_every_account_of_the_change_keeps_it(
    old: list[str | None], new: list[str | None], expected: dict[int, int]
) -> None:
    """New line -> old line, and no pair where another account would have another."""
    assert expected == align(old, new)
