"""Narrowing: what a child holds comes out of what its parent may delegate, and a refusal says what is too much."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.errors import GrantDepthError, GrantExceededError
from batonpass.guard.grants.narrower_terms import find_wider, narrow
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.scope_text import read_scope
from tests.unit.grants.world import World, may

WORLD = World()
NOON = WORLD.clock.now()
LEAD = replace(
    WORLD.terms([may("write:src/**", "read:**")])[0].said,
    may=read_scope(["write:src/**", "read:**", "deploy:prod"]),
    limits=Limits(calls=20),
    until=NOON + timedelta(hours=1),
    max_depth=2,
)


def test_both_rights_come_from_what_the_parent_may_delegate() -> None:
    """What is asked for is given, and what is left unsaid is as the parent has it."""
    asked = Grant(may=read_scope(["write:src/a"]), may_delegate=read_scope(["read:src/**"]))

    assert replace(asked, limits=LEAD.limits, until=LEAD.until, max_depth=2) == narrow(LEAD, asked, depth=0)


def test_less_of_everything_is_given_as_asked() -> None:
    """Narrower limits, an earlier end and a shorter chain are the child's own."""
    asked = Grant(limits=Limits(calls=5, rows=7), until=NOON + timedelta(minutes=1), max_depth=1)

    assert asked == narrow(LEAD, asked, depth=0)


@pytest.mark.parametrize(
    ("asked", "excess"),
    [
        pytest.param(may("write:**"), ("may write:**", "may delegate write:**"), id="both rights"),
        pytest.param(
            Grant(may=read_scope(["write:.github/ci.yml", "read:x"])), ("may write:.github/ci.yml",), id="one"
        ),
        pytest.param(
            Grant(may=read_scope(["deploy:prod"])),
            ("may deploy:prod (which it may use, and may not delegate)",),
            id="what the parent may only use itself",
        ),
        pytest.param(Grant(limits=Limits(calls=21)), ("at most 21 calls (it has 20)",), id="more calls"),
        pytest.param(
            Grant(until=NOON + timedelta(hours=2)),
            ("until 2026-01-02T14:00:00Z (its own ends 2026-01-02T13:00:00Z)",),
            id="a later end",
        ),
        pytest.param(Grant(max_depth=3), ("a chain to depth 3 (its own goes to 2)",), id="a longer chain"),
    ],
)
def test_too_much_is_refused_part_by_part(asked: Grant, excess: tuple[str, ...]) -> None:
    """The error names each part that exceeds, and everything that the parent may delegate."""
    with pytest.raises(GrantExceededError) as caught:
        narrow(LEAD, asked, depth=0)

    assert excess == caught.value.excess
    assert ("lead", ("read:**", "write:src/**")) == (caught.value.holder, caught.value.held)


def test_the_sentence_says_what_to_do() -> None:
    """A model that reads it knows what it may give, and whom to ask."""
    with pytest.raises(GrantExceededError) as caught:
        narrow(LEAD, Grant(may=read_scope(["write:**"])), depth=0)

    assert (
        "lead cannot give may write:**: it may delegate read:**; write:src/**. "
        "Ask for less, or have lead's own grant widened by its giver" == str(caught.value)
    )


def test_a_chain_ends_where_its_terms_say() -> None:
    """The last one who may hand off is the one before the greatest depth."""
    assert 2 == narrow(LEAD, Grant(), depth=1).max_depth
    with pytest.raises(GrantDepthError, match="at depth 2, and its chain may go to 2"):
        narrow(LEAD, Grant(), depth=2)


def test_terms_that_narrow_has_made_are_not_wider() -> None:
    """What it fills in is what a verifier asks for."""
    child = narrow(LEAD, Grant(may=read_scope(["write:src/a"])), depth=1)
    made = replace(LEAD, may=child.may, may_delegate=child.may_delegate, limits=child.limits, until=child.until)

    assert [] == [*find_wider(LEAD, made, depth=1)]


@pytest.mark.parametrize(
    ("changed", "wider"),
    [
        pytest.param({"may": read_scope(["deploy:prod"])}, ["may deploy:prod"], id="what the parent may only use"),
        pytest.param({"may_delegate": read_scope(["write:**"])}, ["may delegate write:**"], id="more to pass on"),
        pytest.param({"limits": Limits(calls=21)}, ["21 calls"], id="more calls"),
        pytest.param({"limits": Limits()}, ["any number of calls"], id="no limit"),
        pytest.param({"until": NOON + timedelta(hours=2)}, ["until 2026-01-02T14:00:00Z"], id="a later end"),
        pytest.param({"until": None}, ["no end"], id="no end"),
        pytest.param({"max_depth": 3}, ["a chain to depth 3"], id="a longer chain"),
        pytest.param({"max_depth": None}, ["any depth"], id="a chain of any length"),
    ],
)
def test_terms_that_are_wider_are_told_part_by_part(changed: dict[str, Any], wider: list[str]) -> None:
    """A verifier says in which way a child holds more than its parent may delegate."""
    child = replace(LEAD, **{"may": LEAD.may_delegate, **changed})

    assert wider == [*find_wider(LEAD, child, depth=1)]


def test_terms_below_the_end_of_a_chain_are_too_deep() -> None:
    """Nobody is below the one who is as deep as a chain may go."""
    child = replace(LEAD, may=LEAD.may_delegate)

    assert ["depth 3"] == [*find_wider(LEAD, child, depth=2)]


def test_a_parent_without_bounds_makes_nothing_wider() -> None:
    """What it does not limit, a child may limit or not."""
    free = replace(LEAD, limits=Limits(), until=None, max_depth=None)

    assert [] == [*find_wider(free, replace(LEAD, may=LEAD.may_delegate), depth=9)]
