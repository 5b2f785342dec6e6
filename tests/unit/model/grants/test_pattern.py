"""Patterns: what they mean, which of two means more, and what both mean, against every call over a small alphabet."""

import pytest
from hypothesis import given

from batonpass.errors import InvalidValueError
from batonpass.model.grants.pattern import Pattern, read_pattern
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.resource import read_resource
from batonpass.model.grants.scope import Scope
from tests.unit.model.scopes import NOON, PLAIN_CALLS, patterns, plain_scopes


def meant(pattern: Pattern) -> set[str]:
    """Return the calls of the small alphabet that a pattern means."""
    return {str(call) for call in PLAIN_CALLS if pattern.matches(call.action, call.place)}


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        pytest.param("write:src/**", ["src/a", "src/a/b"], ["src", "srcs/a", "a/src/b", "/src/a"], id="below a place"),
        pytest.param("write:src/*", ["src/a"], ["src", "src/a/b"], id="right below a place"),
        pytest.param("write:*/a", ["src/a", "b/a"], ["a", "src/b/a"], id="one segment in front"),
        pytest.param("write:**", ["a", "a/b"], ["/a"], id="everything in the work tree"),
        pytest.param("write:/**", ["/a", "/a/b"], ["a", "/"], id="everything outside"),
        pytest.param("*:a", ["a"], ["b"], id="any action"),
    ],
)
def test_what_a_pattern_means(pattern: str, yes: list[str], no: list[str]) -> None:
    """`*` is exactly one segment, `**` at the end one or more, and what is outside of the work tree is meant apart."""
    found = read_pattern(pattern)

    assert yes == [text for text in (*yes, *no) if found.matches("write", read_resource("resource", text))]


@pytest.mark.parametrize(
    "wrong",
    [
        "src",
        "write",
        ":src",
        "write:",
        "write:/",
        "wri te:a",
        "write:a/**/b",
        "write:a*",
        "write:***",
        "-:a",
        "write:../a",
    ],
)
def test_what_is_no_pattern(wrong: str) -> None:
    """An action, a colon and something; `*` is a whole segment and `**` the last."""
    with pytest.raises(InvalidValueError):
        read_pattern(wrong)


@given(patterns, patterns)
def test_covering_is_sound_and_complete(outer: Pattern, inner: Pattern) -> None:
    """One pattern covers another exactly if every call that is meant by the other is meant by it."""
    assert (meant(inner) <= meant(outer)) == outer.covers(inner)


@given(patterns, patterns)
def test_what_both_mean_is_exact(one: Pattern, other: Pattern) -> None:
    """The meet of two patterns means just the calls that both mean, and is none if there are none."""
    met = one.meet(other)

    assert meant(one) & meant(other) == (set() if met is None else meant(met))
    assert met == other.meet(one)


@given(plain_scopes, plain_scopes)
def test_scopes_of_patterns_cover_soundly_and_completely(outer: Scope, inner: Scope) -> None:
    """Also where several patterns are needed to cover one, because `a/**` is `a/*` and `a/*/**`."""
    every = [call for call in PLAIN_CALLS if inner.allows(call, NOON)]

    assert all(outer.allows(call, NOON) for call in every) == outer.covers(inner)


@given(patterns)
def test_a_pattern_by_lengths_means_the_same(pattern: Pattern) -> None:
    """Splitting at a length adds nothing and loses nothing."""
    parts = list(pattern.by_length(2))

    assert meant(pattern) == set().union(*map(meant, parts))


@given(patterns)
def test_a_pattern_comes_back_from_its_text(pattern: Pattern) -> None:
    """What is written is read as the same."""
    assert pattern == read_pattern(str(pattern))
    assert str(pattern) == Permit(pattern).text
