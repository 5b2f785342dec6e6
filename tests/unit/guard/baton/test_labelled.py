"""How much of what is wrong in prose is found, and how often a receiver asks for nothing, on a set with labels.

`labelled/README.md` says how the set was written. The guide prints these figures; a check that finds more raises them.
"""

import time
from collections import Counter

import pytest
from msgspec.structs import replace

from batonpass.guard.baton.problem import BY_FREQUENCY
from batonpass.model.baton.items import Claim, Decision, RejectedPath, WorkItem
from tests.house.tree import ROOT
from tests.unit.guard.baton.labelled_batons import HERE, read_set
from tests.unit.guard.batons import items_of

GUIDE = ROOT / "docs" / "guide" / "handoffs.md"
# Of each set: how many have a problem, how many of these are found, how many have none, and how many are asked about.
FIGURES = {
    "": (60, 58, 200, 1),
    "-2": (40, 38, 80, 0),
    "-3": (40, 35, 80, 0),
    "-4": (30, 24, 60, 0),
    "-5": (30, 27, 60, 0),
    "-6": (30, 25, 60, 0),
}


@pytest.mark.parametrize("number", FIGURES)
def test_most_of_what_was_planted_is_found_and_little_is_asked_for_nothing(number: str) -> None:
    """At least 60 % of the planted problems lead to a question, and at most 2 % of the clean batons do."""
    planted, clean = read_set(f"planted{number}"), read_set(f"clean{number}")
    found = [one for one in planted if one.questions()]
    asked = [one.id for one in clean if one.questions()]

    assert 0.6 <= len(found) / len(planted), [one.id for one in planted if one not in found]
    assert 0.02 >= len(asked) / len(clean), asked
    assert FIGURES[number] == (len(planted), len(found), len(clean), len(asked))


def test_a_set_that_is_held_back_says_what_a_change_is_worth() -> None:
    """Nobody changes a check for it, so what is found there is what users get."""
    found = sum(1 for one in read_set("planted-7") if one.questions())
    asked = sum(1 for one in read_set("clean-7") if one.questions())
    row = f"| planted-7 | {found} of 60 | {asked} of 200 |"

    assert (60, 200) == (len(read_set("planted-7")), len(read_set("clean-7")))
    assert (True, True) == (found >= 23, asked <= 4)
    assert [True, True] == [
        row in (HERE / "README.md").read_text("utf-8"),
        f"{found} of 60" in GUIDE.read_text("utf-8"),
    ]


def test_the_guide_prints_what_was_found_on_sets_that_the_checks_had_not_seen() -> None:
    """A figure on cases for which checks were made says little. The README of the sets has both figures."""
    notes, guide = (HERE / "README.md").read_text("utf-8"), GUIDE.read_text("utf-8")

    assert [] == [row for row in ROWS if row not in notes]
    assert all(figure in guide for figure in ("13 of 40", "22 of 30"))


ROWS = [
    f"| {name}{number} | {there} of {planted} | {asked} of {clean} |"
    for number, (planted, there, clean, asked) in FIGURES.items()
    for name in ("planted",)
]


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
    "piece",
    [
        "attached ",
        "a ",
        "1,",
        "1,200 EUR ",
        "50% a, ",
        "two as: a, ",
        "the other ",
        '"',
        "[A",
        "x" * 40,
        "the plan a ",
        "as shown in the plan ",
        "not A ",
        "only a-b ",
        "step 1 ",
        "A: ",
        "# a",
        "see the ",
        "total 1 ",
        "from 1:00 to 2:00 one ",
        "all tests ",
        "at most 1 EUR ",
        "the 12 as ",
        "the as we ",
        "by 1 May ",
        "Anna Kern ",
        "<a ",
        "$A ",
        "this error ",
        "only ",
        "is ill ",
        "invoice 1 ",
    ],
)
def test_the_checks_take_linear_time(piece: str) -> None:
    """A hundred thousand characters of anything are read in a moment; a pattern that looks back would take minutes."""
    (one, *_) = read_set("clean")
    text = (piece * 100_000)[:100_000]
    told = items_of(Claim(text), Decision(text, why="x"), WorkItem(text), RejectedPath(text, why="x"))
    long = replace(one, baton=replace(one.baton, task=text, items=told))
    begun = time.process_time()
    long.questions()

    assert 10 > time.process_time() - begun
