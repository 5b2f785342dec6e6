"""Statements that cannot both hold are found, and clean ones are left alone."""

from datetime import timedelta
from itertools import combinations

import pytest

from batonpass.model.base.ids import PrincipalId
from batonpass.model.baton.contradiction import Contradiction, Saying, find_contradictions, words_of
from batonpass.model.baton.items import Claim, Constraint, Decision, ItemValue
from batonpass.testing.clock import NOON

ANA, BO = PrincipalId("user:ana"), PrincipalId("agent:bo")


def found(*values: ItemValue) -> list[Contradiction]:
    """Return the contradictions between values that Ana and Bo say in turn, a minute apart."""
    told = [
        (value, Saying(words=words_of(value), by=(ANA, BO)[number % 2], at=NOON + timedelta(minutes=number)))
        for number, value in enumerate(values)
    ]
    return list(find_contradictions(told))


def at_most(value: str, **more: str) -> Constraint:
    return Constraint(key="threshold", operator="<=", value=value, **more)


CONTRADICT = {
    "two thresholds of one key": (at_most("3", unit="sigma"), at_most("5", unit="sigma")),
    "bounds with nothing between them": (at_most("3"), Constraint(key="threshold", operator=">", value="4")),
    "two values": (Constraint(key="rate", operator="=", value="3"), Constraint(key="rate", operator="=", value="2.5")),
    "two claims of one key": (Claim("a", key="rows", value="7"), Claim("b", key="rows", value="8")),
    "a negation": (Decision("round half-even"), Decision("do not round half-even")),
    "a negation inside": (Decision("We do not ship on Fridays."), Decision("we ship on Fridays")),
    "always and never": (Decision("always cache results"), Decision("never cache results")),
    "an opposite verb": (Decision("include returns"), Decision("exclude returns")),
    "a threshold in words": (Decision("flag what is beyond 3 sigma"), Decision("flag what is beyond 5 sigma")),
    "a share": (Decision("accept a deviation of 2 %"), Decision("accept a deviation of 10 %")),
    "a subject with two choices": (Decision("rounding: half-even"), Decision("rounding: half-up")),
    "an equation": (Decision("currency = EUR"), Decision("currency = US dollar")),
}


@pytest.mark.parametrize("pair", CONTRADICT.values(), ids=CONTRADICT.keys())
def test_what_cannot_both_hold_is_found(pair: tuple[ItemValue, ItemValue]) -> None:
    """Once, with both sides: the newest first, and who said it."""
    (one,) = found(*pair)

    assert [(words_of(pair[1]), BO), (words_of(pair[0]), ANA)] == [(side.words, side.by) for side in one.sides]
    assert f'"{words_of(pair[1])}" (agent:bo, ' in one.sentence


CLEAN = (
    "round half-even",
    "compare with last year",
    "compare with 2024",
    "compare with 2025",
    "convert Q1",
    "convert Q2",
    "step 1 is done",
    "step 2 is done",
    "use PostgreSQL",
    "use SQLite for tests",
    "use the rates of May",
    "use the rates of June",
    "flag what is beyond 3 sigma",
    "ignore what is below 1 percent",
    "keep the old API until version 3",
    "drop support for Python 3.10",
    "drop the table of drafts",
    "keep the table of orders",
    "do not touch the payroll module",
    "do not rename columns",
    "never guess",
    "never mail customers",
    "include returns in the east",
    "exclude returns in the west",
    "note: the east is late",
    "note: returns are booked a month late",
    "style: short sentences",
    "ship on Fridays",
    "retry at most 3 times",
    "wait at least 5 seconds",
    "allow read access",
    "forbid write access",
    "start with the north",
    "stop at the first error",
    "add an index on orders",
    "remove the index on drafts",
    "https://example.com/a",
    "run 2 workers",
    "run 4 shards",
    "store amounts in cents",
    "the threshold stays as it is",
    "the rate is final",
    "not before the audit",
    "ask Bo about the south",
)


def test_clean_decisions_raise_no_alarm() -> None:
    """Each of them beside each other, all in one baton."""
    assert [] == found(*map(Decision, CLEAN))
    assert 900 < len(list(combinations(CLEAN, 2)))


FINE = {
    "the same threshold": (at_most("3"), at_most("3.0")),
    "another unit": (at_most("3", unit="sigma"), at_most("5", unit="percent")),
    "a range": (at_most("5"), Constraint(key="threshold", operator=">=", value="1")),
    "two that are excluded": (
        Constraint(key="region", operator="!=", value="east"),
        Constraint(key="region", operator="!=", value="west"),
    ),
    "what binds to different arguments": (
        at_most("3", binds_to="call:a.threshold"),
        at_most("5", binds_to="call:b.threshold"),
    ),
    "figures of two dates": (
        Claim("a", key="rows", value="7", as_of=NOON),
        Claim("b", key="rows", value="8", as_of=NOON + timedelta(days=1)),
    ),
    "the same decision twice": (Decision("never guess"), Decision("never guess.")),
    "prose constraints": (Constraint("never touch the API"), Constraint("touch the API")),
}


@pytest.mark.parametrize("pair", FINE.values(), ids=FINE.keys())
def test_what_can_both_hold_is_left_alone(pair: tuple[ItemValue, ItemValue]) -> None:
    """No alarm."""
    assert [] == found(*pair)


def test_three_sides_are_one_contradiction() -> None:
    """Who said the oldest last is the newest."""
    (one,) = found(at_most("3"), at_most("4"), at_most("5"), at_most("3"))

    assert ["threshold <= 3", "threshold <= 5", "threshold <= 4"] == [side.words for side in one.sides]
