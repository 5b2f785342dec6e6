"""Scopes: which of two holds more, tried on every call over a small alphabet of arguments."""

from datetime import datetime

import pytest
from hypothesis import given

from batonpass.errors import InvalidValueError
from batonpass.model.grants.call import Call, resolved
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import MOST_PERMITS, NOTHING, Scope
from batonpass.model.grants.scope_text import read_permit, read_scope
from tests.unit.model.scopes import ARGUED_CALLS, NOON, PLAIN_CALLS, TIMES, argued_permits, argued_scopes, plain_scopes


def allowed(scope: Scope, at: datetime) -> set[int]:
    """Return the calls of the small alphabet that a scope allows, by number."""
    return {number for number, call in enumerate(ARGUED_CALLS) if scope.allows(call, at)}


@given(argued_scopes, argued_scopes)
def test_covering_is_sound(outer: Scope, inner: Scope) -> None:
    """A scope that covers another allows every call that the other allows, at every moment, and as often."""
    if not outer.covers(inner):
        return
    for at in TIMES:
        assert allowed(inner, at) <= allowed(outer, at)
    for permit in inner.permits:
        assert any(not any(held.limits.find_excess(permit.limits)) for held in outer.permits)


@given(argued_scopes, argued_scopes)
def test_narrowing_gives_at_most_what_is_held(outer: Scope, asked: Scope) -> None:
    """What comes out is covered by both, and lacks only what was found to exceed."""
    narrowed = outer.narrow(asked)
    exceeding = {permit.text for permit in outer.find_excess(asked, unsaid=True)}

    assert outer.covers(narrowed)
    assert asked.covers(narrowed)
    assert len(asked.permits) - len(exceeding) >= len(narrowed.permits) > 0 or exceeding == set(asked.lines)


@given(argued_scopes, argued_scopes)
@pytest.mark.slow
def test_what_both_allow_is_exact(one: Scope, other: Scope) -> None:
    """The meet of two scopes allows just the calls that both allow, at every moment, and both cover it."""
    met = one.meet(other)

    for at in TIMES:
        assert allowed(one, at) & allowed(other, at) == allowed(met, at)
    assert one.covers(met)
    assert other.covers(met)


@given(plain_scopes, plain_scopes)
def test_what_both_allow_is_exact_for_patterns(one: Scope, other: Scope) -> None:
    """The same for scopes of patterns alone."""
    met = one.meet(other)

    assert [one.allows(call, NOON) and other.allows(call, NOON) for call in PLAIN_CALLS] == [
        met.allows(call, NOON) for call in PLAIN_CALLS
    ]


@given(argued_permits)
def test_a_permit_covers_itself(permit: Permit) -> None:
    """Nothing that is written the same way is ever found to exceed."""
    assert permit.covers(permit)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        pytest.param("w:** where p <= 5", "w:** where p in [1, 2]", id="values in a range"),
        pytest.param("w:** where p <= 5", "w:** where p from 1 to 5", id="a range in a range"),
        pytest.param('w:** where p starts with "a"', 'w:** where p matches "ab*c"', id="a form in a form"),
        pytest.param('w:** where p matches "*b*"', 'w:** where p matches "a*bb*a"', id="a part within"),
        pytest.param('w:** where p starts with "a"', 'w:** where p in ["a", "ab"]', id="values of a form"),
        pytest.param("w:** where p under src", "w:** where p under src/a", id="a place below a place"),
        pytest.param("w:** where p under src", 'w:** where p is "./src//a"', id="a path however it is spelled"),
        pytest.param("w:** where p <= 5", "w:** where p <= 5, q is 1", id="one condition more"),
        pytest.param("w:**; at most 5 calls", "w:**; at most 5 calls, 1 spend", id="one limit more"),
        pytest.param("w:**; until 2026-01-02T00:00:00Z", "w:**; until 2026-01-01T00:00:00Z", id="an earlier end"),
        pytest.param("w:** where p in [1, 2]", "w:** where p in [1, 3], p <= 2", id="values that are left"),
    ],
)
def test_covering_finds_what_a_person_sees(outer: str, inner: str) -> None:
    """Each kind of condition is understood in terms of the others, and not the other way round."""
    assert read_permit(outer).covers(read_permit(inner))
    assert not read_permit(inner).covers(read_permit(outer))


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        pytest.param('w:** where p is "1"', "w:** where p is 1", id="text is no number"),
        pytest.param("w:** where p is 1", "w:** where p is true", id="true is no number"),
        pytest.param("w:** where p is 1", "w:** where p from 1 to 1", id="a range also reads text"),
        pytest.param('w:** where p starts with "src"', "w:** where p under src", id="a path has many spellings"),
        pytest.param("w:** where p under src", 'w:** where p starts with "src/"', id="a form knows nothing of paths"),
        pytest.param("w:** where p under src", "w:** where p under /src", id="outside of the work tree"),
        pytest.param('w:** where p matches "a*a"', 'w:** where p starts with "a"', id="an end that is missing"),
        pytest.param('w:** where p matches "a*a"', 'w:** where p is "a"', id="an overlap"),
        pytest.param("w:** where p <= 5", "w:** where q <= 5", id="another argument"),
        pytest.param("w:**; at most 5 calls", "w:**", id="no limit"),
        pytest.param("w:**; until 2026-01-02T00:00:00Z", "w:**", id="no end"),
        pytest.param("w:a/*", "w:a/**", id="deeper"),
    ],
)
def test_covering_is_not_fooled(outer: str, inner: str) -> None:
    """What only looks narrower is not covered."""
    assert not read_permit(outer).covers(read_permit(inner))


def test_what_is_left_unsaid_is_as_the_holder_has_it() -> None:
    """Who asks for less in kind gets the holder's limits and end; who asks for more in number gets nothing."""
    held = read_scope(["w:src/**; at most 5 calls, 2 spend; until 2026-01-02T00:00:00Z"])

    assert ("w:src/a; at most 3 calls, 2 spend; until 2026-01-02T00:00:00Z",) == held.narrow(
        read_scope(["w:src/a; at most 3 calls"])
    ).lines
    assert NOTHING == held.narrow(read_scope(["w:src/a; at most 6 calls"]))


def test_a_permit_that_is_covered_by_two_gets_the_limits_of_both() -> None:
    """Where `a/**` is held in two pieces, asking for the whole gives the lesser of each."""
    held = read_scope(["w:a/*; at most 5 calls", "w:a/*/**; at most 3 calls, 7 rows"])

    assert ("w:a/**; at most 3 calls, 7 rows",) == held.narrow(read_scope(["w:a/**"])).lines


def test_a_scope_has_one_order() -> None:
    """Two people who write the same permits in another order, or twice, write the same scope."""
    assert read_scope(["w:b", "w:a where q is 1, p is 2", "w:b"]) == read_scope(["w:a where p is 2, q is 1", "w:b"])


def test_a_scope_has_a_size() -> None:
    """Nobody reads, or verifies, more than so many permits."""
    with pytest.raises(InvalidValueError, match="at most 256"):
        read_scope([f"w:{number}" for number in range(MOST_PERMITS + 1)])


def test_conditions_that_nothing_keeps_to_are_no_permit() -> None:
    """A permit that allows nothing is a mistake of whoever wrote it; what two have in common may well be nothing."""
    with pytest.raises(InvalidValueError, match="no call keeps to all of"):
        read_permit("w:** where p under a, p under b")

    assert read_permit("w:** where p <= 1").meet(read_permit("w:** where p >= 2")) is None


def test_a_call_is_resolved_before_it_is_judged() -> None:
    """The file system's names stand in for those of the caller, in the resource and in the arguments that are paths."""
    links = {"src/link": ".github/ci.yml", "x": "src/x"}
    call = resolved(
        Call("t", "w", "src/link", {"path": "x", "other": "x", "n": 1}), links.__getitem__, paths={"path", "n"}
    )

    assert ".github/ci.yml" == call.resource
    assert {"path": "src/x", "other": "x", "n": 1} == call.arguments
    assert not read_scope(["w:src/**"]).allows(call, NOON)


@pytest.mark.slow
def test_two_scopes_with_far_too_much_in_common_are_refused() -> None:
    """Each of many permits meets each of many others: that is found out before all of them are compared."""
    one = read_scope([f"write:*/*/*/a{number}/**" for number in range(MOST_PERMITS)])
    other = read_scope([f"write:*/*/b{number}/**" for number in range(MOST_PERMITS)])
    with pytest.raises(InvalidValueError, match="far more than"):
        one.meet(other)

    assert one == one.meet(one)


def test_a_permit_with_many_conditions_meets_itself() -> None:
    """Conditions that both have are counted once."""
    scope = read_scope([f"write:** where {', '.join(f'a{number} <= 1' for number in range(32))}"])

    assert scope == scope.meet(scope)
