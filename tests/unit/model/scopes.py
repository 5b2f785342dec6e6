"""Scopes over an alphabet so small that every call can be tried, and any scope at all for round trips."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Final

from hypothesis import reject
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError
from batonpass.model.grants.call import Call
from batonpass.model.grants.condition import Between, Condition, Like, OneOf, Under
from batonpass.model.grants.limits import Limits
from batonpass.model.grants.pattern import Pattern, read_pattern
from batonpass.model.grants.permit import Permit
from batonpass.model.grants.scope import Scope

NOON: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)
ENDS: Final = tuple(NOON + timedelta(hours=hours) for hours in (1, 2))
TIMES: Final = (NOON, ENDS[0], ENDS[1])
VALUES: Final[tuple[object, ...]] = (
    "",
    "a",
    "ab",
    "ba",
    "aba",
    "b",
    "1",
    1,
    2,
    1.5,
    True,
    None,
    [1],
    ["a", "ab"],
    ["a", 1],
    [],
    {"a": 1},
)
FRESH: Final = "z"  # a segment, and an action, that no pattern names

# Every call over two actions and up to three segments, one more than any pattern names. The fresh name stands for all
# that nobody wrote.
PLACES: Final = tuple(
    (absolute, segments)
    for absolute in (False, True)
    for length in (1, 2, 3)
    for segments in product(("x", "y", FRESH), repeat=length)
)
PLAIN_CALLS: Final = tuple(
    Call("tool", action, ("/" if absolute else "") + "/".join(segments))
    for action in ("a", FRESH)
    for absolute, segments in PLACES
)
ARGUMENTS: Final[tuple[Mapping[str, object], ...]] = (
    {},
    *({"p": value} for value in VALUES),
    {"p": {"q": "a"}},
    {"p": {"q": 1}},
)
ARGUED_CALLS: Final = tuple(Call("tool", "a", place, arguments) for place in ("x", "x/y") for arguments in ARGUMENTS)

patterns = st.builds(
    Pattern,
    st.sampled_from("a*"),
    st.booleans(),
    st.lists(st.sampled_from("xy*"), max_size=2).map(tuple),
    st.just(value=True),
) | st.builds(
    Pattern,
    st.sampled_from("a*"),
    st.booleans(),
    st.lists(st.sampled_from("xy*"), min_size=1, max_size=2).map(tuple),
    st.just(value=False),
)
_arguments = st.sampled_from(["p", "p.q"])
_scalars = st.sampled_from([value for value in VALUES if value is None or isinstance(value, str | int | bool)])
_parts = st.sampled_from(["", "a", "b", "ab"])
_numbers = st.sampled_from(["0", "1", "1.5", "2"])
_ranges = st.builds(
    lambda argument, one, other: Between(argument, *sorted((one, other), key=float)), _arguments, _numbers, _numbers
)
conditions: st.SearchStrategy[Condition] = (
    st.builds(OneOf, _arguments, st.lists(_scalars, min_size=1, max_size=3).map(tuple))
    | st.builds(Under, _arguments, st.sampled_from([".", "a", "a/b", "/", "/a"]))
    | st.builds(Like, _arguments, st.lists(_parts, min_size=2, max_size=4).map(tuple))
    | st.builds(Between, _arguments, most=_numbers)
    | st.builds(Between, _arguments, least=_numbers)
    | _ranges
)
limits = st.builds(
    Limits,
    calls=st.none() | st.integers(0, 3),
    spend=st.none() | st.sampled_from(["0", "1.5", "2"]),
)


@st.composite
def _permits(draw: st.DrawFn, which: st.SearchStrategy[Pattern], where: st.SearchStrategy[Condition]) -> Permit:
    pattern, held, until = draw(which), draw(limits), draw(st.sampled_from([None, *ENDS]))
    try:
        return Permit(pattern, tuple(draw(st.lists(where, max_size=3))), held, until)
    except InvalidValueError:  # conditions that no value keeps to all at once
        reject()


_two_patterns = st.sampled_from([read_pattern("a:x"), read_pattern("a:**")])
plain_scopes = st.lists(patterns.map(Permit), max_size=4).map(lambda permits: Scope(tuple(permits)))
argued_permits = _permits(_two_patterns, conditions)
argued_scopes = st.lists(argued_permits, max_size=3).map(lambda permits: Scope(tuple(permits)))

# Names of any script, with spaces, stars and quotation marks in them: whatever a permit may hold.
_names = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S"], include_characters=" "), min_size=1, max_size=8
)


@st.composite
def _any_pattern(draw: st.DrawFn) -> Pattern:
    segments = draw(st.lists(_names | st.just("*"), min_size=1, max_size=4))
    try:
        return read_pattern(
            f"{draw(st.sampled_from(['write', '*', 'A.b@c']))}:{draw(st.sampled_from(['', '/']))}{'/'.join(segments)}"
        )
    except InvalidValueError:
        reject()


@st.composite
def _any_condition(draw: st.DrawFn) -> Condition:
    argument = draw(st.sampled_from(["path", "order.amount", "_x-1"]))
    scalars = st.lists(
        _names | st.integers(-(2**53) + 1, 2**53 - 1) | st.booleans() | st.none(), min_size=1, max_size=4
    )
    kinds: tuple[Callable[[], Condition], ...] = (
        lambda: OneOf(argument, tuple(draw(scalars))),
        lambda: Under(argument, draw(_names)),
        lambda: Like(argument, tuple(draw(st.lists(_names | st.just(""), min_size=2, max_size=4)))),
        lambda: Between(argument, str(draw(st.decimals(-(10**9), 10**9, places=draw(st.integers(0, 6)))))),
    )
    try:
        return kinds[draw(st.integers(0, len(kinds) - 1))]()
    except InvalidValueError:
        reject()


amounts = st.none() | st.integers(0, 2**53 - 1)
any_limits = st.builds(
    Limits,
    calls=amounts,
    spend=st.none() | st.decimals(0, 10**9, places=2).map(str),
    rows=amounts,
    bytes=amounts,
    tokens=amounts,
    seconds=amounts,
)
any_times = st.none() | st.datetimes(timezones=st.just(UTC))


@st.composite
def any_permits(draw: st.DrawFn) -> Permit:
    """Return any permit at all."""
    try:
        return Permit(
            draw(_any_pattern()), tuple(draw(st.lists(_any_condition(), max_size=3))), draw(any_limits), draw(any_times)
        )
    except InvalidValueError:
        reject()


any_scopes = st.lists(any_permits(), max_size=3).map(lambda permits: Scope(tuple(permits)))
