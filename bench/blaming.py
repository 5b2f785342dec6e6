"""Whose the lines of a repository are found to be, where it is known whose they are; and how long it takes.

The past is made up, line by line, by the generator that the tests use: three agents and a human in the same files, and
branches that are merged, squashed, rebased and picked from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from batonpass.attribution.git.file_git import Repository
from bench.effort import Effort
from bench.measure import time_in_turns
from bench.table import Figure, Goal, Note, Row, Unit, p50
from tests.attribution.agent_files import AGENTS, read_back
from tests.attribution.generator import Past, generate
from tests.attribution.repository import Score, attribute_file, git, score, write_repository

_COMMITS: Final = 200
_NONE: Final = Goal(words="0", at_most=0, of_ratio=False)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to know what agents did."""

    name: str
    least: float = 0.97
    scores: list[Score] = field(default_factory=list)

    def rows(self) -> list[Row]:
        """Return what became of the lines that agents wrote, by calls of which something is recorded."""
        agents = sum(one.agents for one in self.scores)
        right, candidates, unexplained = (
            sum(getattr(one, name) for one in self.scores) / agents for name in ("right", "candidates", "unexplained")
        )
        wrong = sum(one.wrong for one in self.scores)
        goal = Goal(words=f"≥ {self.least * 100:.0f} %", at_least=self.least, of_ratio=False)
        return [
            Row(
                what=f"lines found to be the right run's, {self.name}",
                ours=Figure(right, Unit.SHARE),
                against=f"{candidates:.2%} candidates, {unexplained:.2%} unexplained, of {agents:,} lines",
                theirs=None,
                goal=None if "without git" in self.name else goal,
            ),
            Row(
                what=f"lines given to a wrong run, {self.name}",
                ours=Figure(wrong, Unit.COUNT),
                against=f"of {agents + sum(one.humans + one.hidden for one in self.scores):,} lines, the human's too",
                theirs=None,
                goal=_NONE,
            ),
        ]


def measure(scratch: Path, effort: Effort) -> Sequence[Row | Note]:
    """Attribute all lines of some repositories, with and without recorded hooks, and with and without git."""
    hooks = _Way("with recorded hooks")
    told = _Way("from imported transcripts")
    alone = _Way("with recorded hooks, without git")
    pasts = [generate(seed, _COMMITS) for seed in range(effort.pasts)]
    repositories = [write_repository(past, scratch / str(number)) for number, past in enumerate(pasts)]
    files = {agent.name: _Way(f"from the session files of {agent.name}", agent.share) for agent in AGENTS}
    for number, (past, repository) in enumerate(zip(pasts, repositories, strict=True)):
        for agent in AGENTS:
            kept = read_back(agent, past, scratch / f"{agent.name}-{number}")
            files[agent.name].scores.append(score(past, repository, kept, hidden=past.bash))
        hooks.scores.append(score(past, repository, past.changes))
        told.scores.append(score(past, repository, past.transcript(), hidden=past.bash))
        alone.scores.append(score(past, None, past.changes))
    return [
        *(row for way in (hooks, told, alone, *files.values()) for row in way.rows()),
        _time(repositories[0], pasts[0], effort),
        Note(
            f"{len(pasts)} made-up repositories of at least {_COMMITS} commits. A transcript shows nothing of what "
            "a shell did: lines that only a shell wrote are not among those to be found from it, but none of them may "
            "be given to anybody else. The lowest single repository: "
            f"{min(one.rate for one in hooks.scores):.1%} with hooks, {min(one.rate for one in told.scores):.1%} "
            "from transcripts"
        ),
    ]


def _time(repository: Repository, past: Past, effort: Effort) -> Row:
    file = max(past.tree.values(), key=lambda one: len(one.lines))
    taken = time_in_turns(
        {
            "ours": lambda: attribute_file(file, repository, past.changes),
            "git": lambda: git(repository.root, "blame", "--porcelain", "--", file.path),
        },
        turns=effort.starts,
        acts=1,
    )
    return Row(
        what=f"all {len(file.lines)} lines of one file, after {_COMMITS} commits, what git is asked included",
        ours=p50(taken["ours"]),
        against="git blame of it",
        theirs=p50(taken["git"]),
    )
