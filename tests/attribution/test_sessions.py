"""Generated sessions under hooks: nobody gets a line that is not theirs."""

from pathlib import Path

import pytest

from tests.attribution.sessions import Verdicts, play
from tests.seeds import SEEDS

SHARE = 0.97


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_nobody_gets_a_line_that_is_not_theirs(seed: int, tmp_path: Path) -> None:
    """A person saves during calls, sub-agents work in parallel, and git moves lines about."""
    story = play(seed, tmp_path, steps=12)

    assert (0, True) == (story.verdicts.wrong, story.verdicts.share >= SHARE), story.verdicts


@pytest.mark.slow
def test_in_many_sessions_no_line_is_given_to_the_wrong_one(tmp_path: Path) -> None:
    """And of nearly all it is told who wrote them, or who may have."""
    found = Verdicts()
    for seed in range(100, 100 + SEEDS):
        found += play(seed, tmp_path / str(seed)).verdicts

    assert (0, True) == (found.wrong, found.share >= SHARE), found
