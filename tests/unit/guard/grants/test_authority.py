"""Authority: a call that is denied is denied in words that a model can act on."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from batonpass.errors import GrantDeniedError
from batonpass.guard.grants.authority import authorise
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.call import Call
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.scope_text import read_scope
from tests.unit.grants.world import World, may

WORLD = World()
NOON = WORLD.clock.now()
LEAD, EDITOR = (part.said for part in WORLD.terms([may("write:**", "read:**"), may("write:src/**")]))
EDITOR = replace(EDITOR, agent=AgentId("editor"))


def why(call: Call, *terms: Terms) -> str:
    """Return why a call is denied."""
    with pytest.raises(GrantDeniedError) as caught:
        authorise(terms or (LEAD, EDITOR), call, NOON)
    return str(caught.value)


def calls(resource: str, **arguments: object) -> Call:
    """Return a call that writes."""
    return Call("write_file", "write", resource, arguments)


def test_what_was_held_what_was_tried_and_who_holds_it() -> None:
    """The sentence of the design."""
    assert "editor may write:src/**, tried write:.github/ci.yml; lead holds it" == why(calls(".github/ci.yml"))


def test_nobody_above_holds_it() -> None:
    """Then only the principal can grant it."""
    assert "editor may write:src/**, tried delete:src/a; nobody above holds it, so only user:ana can grant it" == why(
        Call("rm", "delete", "src/a")
    )


def test_a_condition_that_is_broken_is_named_with_the_value() -> None:
    """The argument, and what it was; or that it was not given."""
    picky = replace(EDITOR, may=read_scope(["write:src/** where amount <= 100, path under src"]))

    assert (
        "editor may write:src/** where amount <= 100, path under src, tried write:src/a with amount 250, "
        "path not given; lead holds it" == why(calls("src/a", amount=250), LEAD, picky)
    )


def test_a_permit_that_ended_is_named_with_the_time() -> None:
    """The call would have been let through before."""
    ended = replace(EDITOR, may=read_scope(["write:src/**; until 2026-01-02T12:00:00Z"]))

    assert "with the time 2026-01-02T12:00:00Z; lead holds it" in why(calls("src/a"), LEAD, ended)
    authorise((LEAD, ended), calls("src/a"), NOON - timedelta(seconds=1))


def test_a_hop_above_that_may_not_delegate_it_is_named() -> None:
    """The nearest one, and what it may delegate instead."""
    keeps = replace(LEAD, may_delegate=read_scope(["read:**"]))

    assert (
        "editor may write:src/a, but lead may not delegate it: lead may delegate read:**; "
        "nobody above holds it, so only user:ana can grant it" == why(calls("src/a"), keeps, EDITOR)
    )


def test_the_hop_that_is_named_is_the_one_that_stops_the_call() -> None:
    """Whoever is between may delegate it, and asking them would change nothing."""
    keeps = replace(LEAD, may_delegate=read_scope(["read:**"]))
    middle = replace(EDITOR, agent=AgentId("middle"), may_delegate=read_scope(["write:**"]))

    assert "but lead may not delegate it: lead may delegate read:**" in why(calls("src/a"), keeps, middle, EDITOR)


def test_the_holder_is_the_nearest_one_whose_own_chain_lets_it() -> None:
    """Somebody whose right was cut off above holds nothing that could be given."""
    middle = replace(EDITOR, agent=AgentId("middle"), may_delegate=read_scope(["write:**"]))

    assert why(calls("x"), LEAD, middle, EDITOR).endswith("middle holds it")
    cut = replace(LEAD, may_delegate=read_scope(["write:src/**"]))
    assert why(calls("x"), cut, middle, EDITOR).endswith("nobody above holds it, so only user:ana can grant it")


def test_what_let_a_call_through_is_told_hop_by_hop() -> None:
    """The first permit of each hop that allows it, so that whoever counts knows against what."""
    lead = replace(LEAD, may_delegate=read_scope(["write:**; at most 9 calls", "write:src/**"]))
    call = calls("src/a")

    assert ["write:**; at most 9 calls", "write:src/**"] == [str(one) for one in authorise((lead, EDITOR), call, NOON)]


def test_a_long_scope_is_shown_in_part_and_what_is_alike_first() -> None:
    """A model does not have to read two hundred permits to learn which of them comes close."""
    many = replace(EDITOR, may=read_scope([*(f"a{number}:x" for number in range(9)), "write:docs/**"]))

    assert why(calls("x"), LEAD, many).startswith(
        "editor may write:docs/** | a0:x | a1:x | a2:x | a3:x and 5 more, tried write:x;"
    )
    assert why(calls("x"), LEAD, replace(EDITOR, may=read_scope([]))).startswith(
        "editor may do nothing, tried write:x;"
    )


def test_what_a_caller_wrote_cannot_reach_a_screen() -> None:
    """Controls and marks of direction in an argument are spelled out, and long values are cut."""
    picky = replace(EDITOR, may=read_scope(["write:** where p under src"]))
    told = why(calls("src/a", p="\x1b[2J\u202e" + "x" * 500), LEAD, picky)

    assert told.isprintable()
    assert 300 > len(told)
