"""What grants allow: patterns that contain each other, terms that only narrow, every hop asked at each call."""

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.authority.grants import covers, expiry_at, find_refusal, make_terms, narrow, require_pattern
from batonpass.errors import GrantExceededError, InvalidValueError

WORDS = st.sampled_from(["a", "b", "c"])
RESOURCES = st.lists(WORDS, min_size=1, max_size=3).map("/".join)
PERMISSIONS = st.builds("{}:{}".format, st.sampled_from(["read", "write"]), RESOURCES)
SEGMENTS = st.lists(WORDS | st.just("*"), min_size=1, max_size=3)
PATTERNS = st.builds(
    lambda action, segments, is_open: f"{action}:{'/'.join([*segments, '**'] if is_open else segments)}",
    st.sampled_from(["read", "write"]),
    SEGMENTS,
    st.booleans(),
)
ENDINGS = [list(each) for size in (1, 2, 3) for each in product("ab*", repeat=size)]
EVERY_PATTERN = [f"read:{'/'.join([*ending, *more])}" for ending in ENDINGS for more in ([], ["**"])] + ["read:**"]
EVERY_PERMISSION = [f"read:{'/'.join(each)}" for size in (1, 2, 3, 4) for each in product("ab", repeat=size)]
NOW = 1_700_000_000_000_000


class Hop(NamedTuple):
    """What one hop of a lineage holds."""

    agent: str
    terms: Any


def matches(pattern: str, permission: str) -> bool:
    """Return whether a concrete permission is one that a pattern describes, as the guide says it."""
    action, _, resource = pattern.partition(":")
    own_action, _, own_resource = permission.partition(":")
    segments, own = resource.split("/"), own_resource.split("/")
    if segments[-1] == "**":
        segments, is_long_enough = segments[:-1], len(own) >= len(segments)
    else:
        is_long_enough = len(own) == len(segments)
    fit = all(segment in {"*", part} for segment, part in zip(segments, own, strict=False))
    return action == own_action and is_long_enough and fit


@given(PATTERNS, PERMISSIONS)
def test_a_pattern_covers_what_it_describes(pattern: str, permission: str) -> None:
    """One segment for a star, one or more for two of them at the end, everything else as it is spelled."""
    assert matches(pattern, permission) == covers(pattern, permission)


def test_what_a_covered_pattern_matches_is_covered() -> None:
    """A pattern that covers another one covers each permission of it, for each pair: so nothing grows along a chain."""
    matched = {pattern: {each for each in EVERY_PERMISSION if covers(pattern, each)} for pattern in EVERY_PATTERN}

    wrong = [
        (outer, inner)
        for outer, inner in product(EVERY_PATTERN, repeat=2)
        if covers(outer, inner) and not matched[inner] <= matched[outer]
    ]

    assert [] == wrong


@given(st.lists(PATTERNS, max_size=3), st.lists(PATTERNS, max_size=3), PERMISSIONS)
def test_narrowed_terms_allow_nothing_new(held: list[str], asked: list[str], permission: str) -> None:
    """A child that was given narrower terms is allowed nothing that its parent may not delegate."""
    parent = make_terms(held, held, None)
    try:
        child = narrow(parent, may=asked, may_delegate=asked)
    except GrantExceededError:
        assert not all(any(covers(own, each) for own in held) for each in asked)
        return
    lineage: Any = [Hop("lead", parent), Hop("editor", child)]

    is_allowed = find_refusal(lineage, permission, NOW) is None

    assert is_allowed == any(matches(pattern, permission) for pattern in asked)
    assert not is_allowed or any(matches(pattern, permission) for pattern in held)


@pytest.mark.parity("grants-only-narrow")
def test_a_chain_that_was_widened_by_force_has_no_effect() -> None:
    """Every hop is asked at each call, so terms that were made wider than their parent's allow nothing more."""
    parent = make_terms(["read:a"], ["read:a"], None)
    child = make_terms(["read:**", "write:**"], [], None)
    lineage: Any = [Hop("lead", parent), Hop("editor", child)]

    refusal = find_refusal(lineage, "write:a", NOW)

    assert refusal is not None
    assert ("grant.exceeded", "editor tried write:a, which lead may not delegate") == (refusal.rule, refusal.reason)
    assert find_refusal(lineage, "read:a", NOW) is None


def test_a_child_ends_with_its_parent() -> None:
    """Terms last as long as the shortest of their chain, and the digest of the parent's is in them."""
    parent = make_terms(["read:**"], ["read:**"], NOW + 10)
    longer = narrow(parent, may=["read:a"], may_delegate=[], expires_at=NOW + 20)
    shorter = narrow(parent, may=["read:a"], may_delegate=[], expires_at=NOW + 5)

    assert (NOW + 10, NOW + 5) == (longer.expires_at, shorter.expires_at)
    assert longer.parent == shorter.parent


@pytest.mark.parametrize(("now", "rule"), [(NOW - 1, None), (NOW, "grant.expired"), (NOW + 1, "grant.expired")])
def test_a_grant_ends_at_its_moment(now: int, rule: str | None) -> None:
    """At the microsecond of its end a grant allows nothing any more, whichever hop's it is."""
    lineage: Any = [Hop("lead", make_terms([], ["read:**"], NOW)), Hop("editor", make_terms(["read:**"], [], None))]

    refusal = find_refusal(lineage, "read:a", now)

    assert rule == (None if refusal is None else refusal.rule)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("read", id="no resource"),
        pytest.param(":a", id="no action"),
        pytest.param("read:", id="an empty resource"),
        pytest.param("*:a", id="any action"),
        pytest.param("read:a//b", id="an empty segment"),
        pytest.param("read:a/../b", id="a step back"),
        pytest.param("read:./a", id="a step nowhere"),
        pytest.param("read:/etc", id="an absolute path"),
        pytest.param("read:a*", id="a part of a segment"),
        pytest.param("read:**/a", id="many segments before the end"),
        pytest.param("read:a\\b", id="a backslash"),
        pytest.param("read:a%2fb", id="an escape"),
        pytest.param("read:a\u200bb", id="a character that nobody sees"),
        pytest.param("read:a\u202eb", id="a character that turns the text around"),
        pytest.param("read:ｆile", id="a letter of another width"),  # noqa: RUF001 - it is what is tested
        pytest.param("read:a\nb", id="a new line"),
    ],
)
def test_a_pattern_that_could_be_read_in_two_ways_is_refused(pattern: str) -> None:
    """Nothing is repaired: neither a grant nor a call may be spelled so."""
    with pytest.raises(InvalidValueError):
        require_pattern(pattern)
    lineage: Any = [Hop("lead", make_terms(["read:**"], [], None))]

    refusal = find_refusal(lineage, pattern, NOW)

    assert refusal is not None
    assert "value.invalid" == refusal.rule


@pytest.mark.parametrize(
    ("expires", "seconds"),
    [
        ("90s", 90),
        ("30m", 1_800),
        ("24h", 86_400),
        ("7d", 604_800),
        (timedelta(minutes=1), 60),
        (datetime.fromtimestamp(NOW / 1_000_000 + 5, UTC), 5),
    ],
)
def test_an_end_is_a_moment_or_a_duration(expires: datetime | timedelta | str, seconds: int) -> None:
    """Text, a duration and a moment with a time zone all say when a grant ends."""
    assert NOW + seconds * 1_000_000 == expiry_at(expires, NOW)


@pytest.mark.parametrize("expires", ["", "24", "h", "1.5h", "-1h", "24 h", "²h", "1" * 10 + "d", "soon"])
def test_an_end_that_is_unclear_is_refused(expires: str) -> None:
    """A duration has digits and a unit, and nothing else."""
    with pytest.raises(InvalidValueError):
        expiry_at(expires, NOW)


def test_a_moment_without_a_time_zone_is_refused() -> None:
    """A clock on the wall is not the same everywhere."""
    with pytest.raises(InvalidValueError, match="time zone"):
        expiry_at(datetime(2026, 1, 1), NOW)  # noqa: DTZ001 - it is what is tested
