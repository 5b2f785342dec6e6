"""Large files take their time, but not the square of it."""

import time

import pytest

from tests.attribution.story import Story

MANY = 200_000
EQUAL = "value = compute_the_same(again)"


def seconds(story: Story) -> float:
    began = time.process_time()
    story.found()
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [pytest.param(EQUAL, id="a line that says something"), pytest.param("", id="blank lines")]
)
def test_very_many_equal_lines_are_answered(line: str) -> None:
    """200,000 times the same line, of which half was added by a call and some by a person: all are answered, and soon.

    The square of it would take hours.
    """
    story = Story()
    story.becomes(*[line] * (MANY // 2))
    story.commits()
    story.records("run_a", *[line] * MANY)
    story.becomes(*[line] * MANY, "the_end = here", *[line] * 5)

    assert seconds(story) < 60


@pytest.mark.slow
def test_very_many_moved_lines_are_answered() -> None:
    """Two megabytes of which every second piece changed places: some thousand moves in one change."""
    lines = [f"line_{number:07} = value_of_something_or_other({number:07})" for number in range(MANY // 5)]
    pieces = [lines[start : start + 10] for start in range(0, len(lines), 10)]
    moved = [line for pair in zip(pieces[1::2], pieces[::2], strict=True) for piece in pair for line in piece]
    story = Story()
    story.records("run_a", *lines)
    story.records("run_b", *moved)
    story.becomes(*lines, EQUAL)

    assert seconds(story) < 60
