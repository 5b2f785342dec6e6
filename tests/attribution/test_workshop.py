"""Who wrote what where agents and people use git itself: nobody is ever named for a line that is not theirs."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from batonpass.attribution.git.file_git import Repository
from tests.attribution.repository import ENVIRONMENT, Score, score_files
from tests.attribution.workshop import DOINGS, Workshop, visit
from tests.seeds import SEEDS

FEW = range(3)
MANY = range(SEEDS)


def scores(shops: Sequence[Workshop]) -> tuple[list[Score], list[Score]]:
    """Return how many lines were found to be whose, with hooks and from transcripts, and print both."""
    hooks, told = [], []
    for shop in shops:
        repository = Repository(shop.root, ENVIRONMENT)
        files = shop.tree.values()
        hooks.append(score_files(files, repository, shop.changes))
        told.append(score_files(files, repository, shop.transcript(), hidden=shop.hidden))
    print("\nwith hooks:", reduce(add, hooks), "\nfrom transcripts:", reduce(add, told))  # noqa: T201 - what it is about
    return hooks, told


@pytest.mark.slow
def test_a_few_workshops_have_no_line_given_to_a_wrong_run(tmp_path: Path) -> None:
    """Whatever git did to them, nine of ten lines are found, and none is said to be somebody else's."""
    hooks, told = scores([visit(seed, tmp_path / str(seed)) for seed in FEW])

    assert [0] * 2 * len(FEW) == [one.wrong for one in (*hooks, *told)]
    assert min(reduce(add, hooks).reach, reduce(add, told).reach) >= 0.9


@pytest.mark.slow
def test_many_workshops_have_no_line_given_to_a_wrong_run(tmp_path: Path) -> None:
    """Of many repositories 97 of 100 lines are found, or theirs who may have written them; and none is wrong."""
    shops = [visit(seed, tmp_path / str(seed)) for seed in MANY]
    done = {name for shop in shops for name in shop.happened}
    hooks, told = scores(shops)

    assert set() == DOINGS.keys() - done
    assert [] == [seed for seed, one, other in zip(MANY, hooks, told, strict=True) if one.wrong or other.wrong]
    assert min(reduce(add, hooks).reach, reduce(add, told).reach) >= 0.97
