"""The same generated repositories, known only from the session files of each coding agent."""

from functools import reduce
from operator import add
from pathlib import Path

import pytest

from tests.attribution.agent_files import AGENTS, AgentFiles, read_back
from tests.attribution.generator import generate
from tests.attribution.repository import score, write_repository

SEEDS = (1, 2)
COMMITS = 60

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("agent", AGENTS, ids=str)
def test_nobody_gets_a_line_that_is_not_theirs(agent: AgentFiles, tmp_path: Path) -> None:
    """Of the lines that the files of an agent show being written nearly all are found, and none is another run's.

    What a shell wrote no file shows: those lines are to be nobody's.
    """
    found = []
    for number in SEEDS:
        past = generate(number, COMMITS)
        repository = write_repository(past, tmp_path / str(number) / "repository")
        changes = read_back(agent, past, tmp_path / str(number))
        assert bool(changes) is agent.tells_results
        found.append(score(past, repository, changes, hidden=past.bash))
    total = reduce(add, found)
    print(f"\n{agent}: {total}")  # noqa: T201 - the figures are what it is about

    assert (0, True) == (total.wrong, total.rate >= agent.share), total
