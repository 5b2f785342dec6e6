"""The least scope: exact where little was seen, a directory where much was, and never broader than asked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError
from batonpass.guard.grants.least_grant import Breadth, LeastScope, least_scope
from batonpass.model.base.ids import AgentId
from batonpass.model.grants.call import Call
from batonpass.model.grants.scope import Scope
from batonpass.model.grants.scope_text import read_scope
from tests.unit.model.scopes import NOON, plain_scopes

EDITOR = AgentId("editor")


def seen(*resources: str, action: str = "write", breadth: Breadth | None = None) -> LeastScope:
    """Return what is suggested for one agent that did this to these."""
    (found,) = least_scope(((EDITOR, Call("tool", action, resource)) for resource in resources), breadth)
    return found


def counted(found: LeastScope) -> dict[str, int]:
    """Return how many calls each permit covers."""
    return {suggestion.permit.text: suggestion.calls for suggestion in found.suggested}


@pytest.mark.parametrize(
    ("resources", "suggested"),
    [
        pytest.param(["src/a", "src/a", "src/b"], {"write:src/a": 2, "write:src/b": 1}, id="two files are two files"),
        pytest.param(["src/a", "src/b", "src/c"], {"write:src/*": 3}, id="three files are a directory"),
        pytest.param(["src/a", "src/b", "src/c/d"], {"write:src/**": 3}, id="one of them deeper"),
        pytest.param(
            ["src/x/a", "src/x/b", "src/x/c", "docs/a"],
            {"write:docs/a": 1, "write:src/x/*": 3},
            id="the directory in which it was",
        ),
        pytest.param(
            ["a", "b", "c", "d"], dict.fromkeys(["write:a", "write:b", "write:c", "write:d"], 1), id="the top"
        ),
        pytest.param(["/etc/a", "/etc/b", "/etc/c", "etc/d"], {"write:etc/d": 1, "write:/etc/*": 3}, id="outside"),
        pytest.param(
            ["src", "src/a", "src/b", "src/c"], {"write:src": 1, "write:src/*": 3}, id="a place and what is in it"
        ),
    ],
)
def test_what_is_suggested(resources: list[str], suggested: dict[str, int]) -> None:
    """Three different entries of a directory stand for all of it, except at the very top."""
    found = seen(*resources)

    assert suggested == counted(found)
    assert () == found.outside


def test_how_broad_is_the_callers_choice() -> None:
    """More siblings, more fixed segments, or a ceiling keep a suggestion narrow; none of them lets it grow."""
    names = ["src/x/a", "src/y/b", "src/z/c"]

    assert ["write:src/**"] == list(counted(seen(*names)))
    assert [f"write:{name}" for name in names] == list(counted(seen(*names, breadth=Breadth(siblings=4))))
    assert [f"write:{name}" for name in names] == list(counted(seen(*names, breadth=Breadth(fixed=2))))
    assert ["write:**"] == list(counted(seen("a", "b", "c/d", breadth=Breadth(fixed=0))))
    below = Breadth(ceiling=read_scope(["write:src/*/*"]))
    assert [f"write:{name}" for name in names] == list(counted(seen(*names, breadth=below)))


def test_calls_beyond_the_ceiling_are_told_and_not_suggested() -> None:
    """What nobody may grant is a finding, not a suggestion."""
    found = seen("src/a", "etc/b", breadth=Breadth(ceiling=read_scope(["write:src/**"])))

    assert {"write:src/a": 1} == counted(found)
    assert ("write:etc/b",) == found.outside


def test_agents_and_actions_are_kept_apart() -> None:
    """What one agent was seen to do says nothing about another."""
    lead = AgentId("lead")
    found = least_scope(
        [(lead, Call("t", "read", "a")), (EDITOR, Call("t", "read", "a")), (EDITOR, Call("t", "w", "a"))]
    )

    assert [(EDITOR, ("read:a", "w:a")), (lead, ("read:a",))] == [(one.agent, one.grant.may.lines) for one in found]


def test_nothing_observed_suggests_nothing() -> None:
    """Without calls there is no agent."""
    assert () == least_scope([])


def test_a_breadth_that_makes_no_sense_is_refused() -> None:
    """One entry stands for nothing but itself."""
    for siblings, fixed in ((1, 0), (2, -1)):
        with pytest.raises(InvalidValueError):
            Breadth(siblings=siblings, fixed=fixed)


def test_of_more_permits_than_a_grant_holds_those_for_most_calls_are_kept() -> None:
    """What is left out is counted, and each of its calls is told."""
    often = [f"f{number}" for number in range(100, 300)]
    found = seen(*(f"f{number}" for number in range(300)), *often)
    kept = {one.permit.text for one in found.suggested}

    assert (256, 44, 44) == (len(found.suggested), found.left, len(found.outside))
    assert {f"write:{name}" for name in often} <= kept
    assert found.grant.may


paths = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map("/".join), min_size=1, max_size=12)


@settings(max_examples=60)
@given(paths, st.integers(2, 4), st.integers(0, 2), st.none() | plain_scopes)
def test_every_call_is_covered_or_told(names: list[str], siblings: int, fixed: int, ceiling: object) -> None:
    """Whatever was seen is covered by what is suggested, or said to be beyond the ceiling, which nothing exceeds."""
    breadth = Breadth(siblings=siblings, fixed=fixed, ceiling=ceiling)  # type: ignore[arg-type]
    found = seen(*names, action="a", breadth=breadth)
    for name in names:
        assert found.grant.may.allows(Call("tool", "a", name), NOON) is not (f"a:{name}" in found.outside)
    for suggestion in found.suggested:
        assert len(suggestion.permit.pattern.segments) >= fixed or not suggestion.permit.pattern.more
    assert breadth.ceiling is None or breadth.ceiling.covers(found.grant.may)


# Names that a grant has to quote, that look like the grammar of one, or that no grant may name at all.
names = st.sampled_from(
    ["a", "b", "c", "d", "a b", "where", "x; at most 1 calls", 'quo"te', "a,b", "pa\u0443", "\u0443\u0443"]
)
calls = st.lists(
    st.builds(
        lambda action, root, segments: Call("tool", action, root + "/".join(segments) or "."),
        st.sampled_from(["read", "write", "call"]),
        st.sampled_from(["", "/"]),
        st.lists(names, min_size=0, max_size=3),
    ),
    min_size=1,
    max_size=12,
)

ceilings = st.lists(
    st.sampled_from(
        [
            "write:a/**",
            "*:** where n <= 2",
            "write:*; at most 3 calls",
            "read:/**; until 2027-01-01T00:00:00Z",
            "call:a/b",
            "read:*/*",
        ]
    ),
    max_size=4,
).map(read_scope)


@settings(max_examples=100)
@given(calls, calls)
def test_exact_suggestions_let_exactly_the_same_calls_pass(observed: list[Call], others: list[Call]) -> None:
    """Written down and read by somebody: what was seen passes, and of all else nothing does."""
    (found,) = least_scope(((EDITOR, call) for call in observed), Breadth(siblings=1000))
    pasted = read_scope(found.grant.may.lines)
    seen_before = {str(call) for call in observed} - set(found.outside)

    for call in (*observed, *others):
        assert pasted.allows(call, NOON) is (str(call) in seen_before)


@settings(max_examples=100)
@given(calls, ceilings)
def test_a_ceiling_with_conditions_and_limits_is_kept(observed: list[Call], ceiling: Scope) -> None:
    """What the ceiling speaks about is suggested, under what it demands; what it does not speak about is told."""
    (found,) = least_scope(((EDITOR, call) for call in observed), Breadth(ceiling=ceiling))

    assert ceiling.covers(found.grant.may)
    for call in observed:
        covered = any(permit.pattern.matches(call.action, call.place) for permit in found.grant.may.permits)
        assert covered is not (str(call) in found.outside)
        spoken_of = any(permit.pattern.matches(call.action, call.place) for permit in ceiling.permits)
        assert covered is spoken_of or "pa\u0443" in call.resource


def test_a_limited_permit_was_used_all_the_same() -> None:
    """An exact permit without the limit would be more than was granted; with it, it is just enough."""
    ceiling = read_scope(["write:src/**; at most 3 calls", "write:docs/** where n <= 2"])
    found = seen("src/a", "src/a", "docs/b", breadth=Breadth(ceiling=ceiling))

    assert {"write:docs/b where n <= 2": 1, "write:src/a; at most 3 calls": 2} == counted(found)


def test_names_of_tools_stand_for_themselves() -> None:
    """Three tools of a server, or three programs, say nothing of a fourth; three files of a directory do."""
    calls = [
        (AgentId("editor"), Call("x", action, f"shop/{name}")) for action in ("call", "run", "read") for name in "abc"
    ]

    (editor,) = least_scope(calls)

    assert ("call:shop/a", "call:shop/b", "call:shop/c", "read:shop/*", "run:shop/a", "run:shop/b", "run:shop/c") == (
        editor.grant.may.lines
    )
