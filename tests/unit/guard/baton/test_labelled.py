"""How much of what is wrong in prose is found, and how often a receiver asks for nothing, on a set with labels.

`labelled/README.md` says how the set was written. The guide prints these figures; a check that finds more raises them.
"""

import time
from collections import Counter

import pytest
from msgspec.structs import replace

from batonpass.guard.baton.problem import BY_FREQUENCY
from tests.house.tree import ROOT
from tests.unit.guard.baton.labelled_batons import read_set

GUIDE = ROOT / "docs" / "guide" / "handoffs.md"
FOUND, FALSE = 55, 0


def test_most_of_what_was_planted_is_found_and_little_is_asked_for_nothing() -> None:
    """At least 60 % of the planted problems lead to a question, and at most 4 of the clean batons do."""
    planted, clean = read_set("planted"), read_set("clean")
    found = [one for one in planted if one.questions()]
    asked = [one.id for one in clean if one.questions()]

    assert (60, 200) == (len(planted), len(clean))
    assert 0.6 <= len(found) / len(planted), [one.id for one in planted if one not in found]
    assert 4 >= len(asked), asked
    assert (FOUND, FALSE) == (len(found), len(asked))
    assert f"{FOUND} of 60" in GUIDE.read_text("utf-8")


def test_every_type_is_found() -> None:
    """And mostly under its own name: the first question is about the type that was planted."""
    named = Counter(one.error for one in read_set("planted") if any(p.error is one.error for p in one.questions()))
    there = Counter(one.error for one in read_set("planted"))

    assert [] == [error for error in BY_FREQUENCY if named[error] < 0.6 * there[error]]


def test_prose_alone_never_blocks() -> None:
    """Words can be read in many ways, so a check of words asks, and holds nobody up if it may not ask."""
    blocking = {problem.check for one in read_set("planted") for problem in one.questions() if problem.blocking}

    assert {"referential-drift.unresolved"} == blocking  # a spelled-out reference, such as run:7f3a9b2c, is no prose


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["attached ", "a ", "1,", "1,200 EUR ", "50% a, ", "two as: a, ", "the other ", '"', "[A", "x" * 40]
)
def test_the_checks_take_linear_time(piece: str) -> None:
    """A hundred thousand characters of anything are read in a moment; a pattern that looks back would take minutes."""
    (one, *_) = read_set("clean")
    long = replace(one, baton=replace(one.baton, task=(piece * 100_000)[:100_000]))
    begun = time.process_time()
    long.questions()

    assert 10 > time.process_time() - begun
