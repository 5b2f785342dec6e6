"""Whose lines are in a clone that has nobody's ledger: two people, a server that squashes, and notes that travel."""

from functools import reduce
from operator import add
from pathlib import Path
from statistics import median

import pytest

from tests.attribution.team import Team, TeamScore, fresh_clone, play
from tests.seeds import SEEDS

FEW = range(2)
MANY = range(2, 2 + SEEDS // 4)
LARGEST = 1024  # bytes of the record of one file in one commit, in the median


def sizes(teams: list[Team]) -> tuple[list[int], list[int]]:
    """Return how long records and proofs are."""
    notes = [one for team in teams for member in team.members for one in member.notes]
    records = [len(line) + 1 for one in notes for line in one.lines.get(one.commit, ())]
    proofs = [len(line) + 1 for one in notes for lines in one.proofs.values() for line in lines]
    return records, proofs


def scored(teams: list[Team]) -> TeamScore:
    """Compare fresh clones with the truth, and print what became of the lines."""
    found = reduce(add, [team.score(fresh_clone(team, "fresh")) for team in teams])
    records, proofs = sizes(teams)
    told = f"records: median {median(records)} bytes, largest {max(records)}; a line of a proof: {median(proofs)} bytes"
    print(f"\n{found}\n{told}")  # noqa: T201 - the figures are what it is about
    return found


@pytest.mark.slow
def test_a_fresh_clone_names_nobody_who_did_not_write_a_line(tmp_path: Path) -> None:
    """After squashes, rebases, picks and partial checkouts on the server, and work of two people: none is wrong."""
    teams = [play(seed, tmp_path / str(seed)) for seed in FEW]
    found = scored(teams)

    assert [] == [problem for problem in found.problems if "WRONG" in problem]
    assert found.share >= 0.9
    assert median(sizes(teams)[0]) <= LARGEST


@pytest.mark.slow
def test_a_shallow_clone_answers_too(tmp_path: Path) -> None:
    """Where git has only the last commit, records lead back from blob to blob, and nobody wrong is named."""
    team = play(1, tmp_path / "1", rounds=6)
    whole = team.score(fresh_clone(team, "fresh"))
    shallow = team.score(fresh_clone(team, "shallow", "--depth=1"))

    assert (0, 0) == (whole.wrong, shallow.wrong)
    assert shallow.right >= 0.5 * whole.right


@pytest.mark.slow
def test_many_teams_have_no_line_given_to_a_wrong_run(tmp_path: Path) -> None:
    """Of what the machines of the authors know, a fresh clone knows 95 of 100 lines; and none is wrong."""
    teams = [play(seed, tmp_path / str(seed)) for seed in MANY]
    done = {name for team in teams for name in team.happened}
    found = scored(teams)

    assert set() == {"squash", "rebase", "merge", "pick", "partial"} - done
    assert [] == [problem for problem in found.problems if "WRONG" in problem]
    assert found.share >= 0.95
