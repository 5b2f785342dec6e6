"""Arguments and results as JSON: whatever a tool gets or gives, the call can be recorded."""

import json
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.handoff.files.path_spellings import texts_in
from batonpass.handoff.tools.json_values import (
    BYTES,
    JSON,
    SHOWN,
    TEXT,
    describe,
    give_back,
    keep_result,
    looks,
    plain,
    readable,
)
from tests.unit.handoff.places import LONE_SURROGATE, NASTY, nested

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Colour(Enum):
    """An enumeration of somebody else."""

    RED = "red"


class Level(IntEnum):
    """An enumeration that is an integer."""

    HIGH = 3


@dataclass
class Order:
    """A dataclass of somebody else."""

    id: int
    lines: tuple[str, ...]


class Parcel(Struct):
    """A struct of somebody else."""

    path: Path
    orders: list[Order]


@dataclass
class Node:
    """A node that knows the nodes around it, as trees of objects do."""

    name: str
    parent: "Node | None" = None
    children: "list[Node] | None" = None


class Unshowable:
    """Says nothing about itself."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


class Moody(dict[str, int]):
    """Is equal to nothing, loudly."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")

    __hash__ = None


def named(value: object) -> str:
    """Return a name for a case that is the same in every process."""
    return type(value).__name__ if isinstance(value, frozenset) else looks(value)[:40]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2.5, 2.5),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (Decimal("1.10"), "1.10"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00+00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Path("a/b"), "a/b"),
        (Order(1, ("a",)), {"id": 1, "lines": ["a"]}),
        (Parcel(Path("a/b"), [Order(1, ())]), {"path": "a/b", "orders": [{"id": 1, "lines": []}]}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        ({2, 1}, [1, 2]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        (10**5000, {"integer": hex(10**5000)}),
    ],
    ids=named,
)
def test_values_have_a_plain_form(value: object, expected: object) -> None:
    """What programs usually pass is described by its content, the same in every process."""
    assert expected == plain(value)


def test_a_path_is_found_in_whatever_has_parts() -> None:
    """A tool that takes a struct is as well guarded as one that takes a dataclass."""
    arguments = {"parcel": [Parcel(Path(".batonpass/root.key"), [Order(1, ("src/a.py",))])]}

    assert ([".batonpass/root.key", "src/a.py"], True) == (
        sorted(texts_in(arguments, lambda _: False)[0]),
        texts_in(arguments, lambda _: False)[1],
    )


def test_bytes_are_described_by_their_digest() -> None:
    """Ten megabytes of arguments do not become ten megabytes of description."""
    assert {"sha256", "size"} == plain(bytes(10_000_000)).keys()
    assert plain(b"a") == plain(bytearray(b"a")) == plain(memoryview(b"a"))


@pytest.mark.parametrize(
    "value",
    [Unshowable(), {Unshowable(): 1}, [Unshowable()], object, len, iter([])],
    ids=["nothing to show", "as a key", "in a list", "a type", "a function", "an iterator"],
)
def test_what_has_no_form_is_shown(value: object) -> None:
    """Whatever its own methods do, a value can be described."""
    assert json.loads(describe({"value": value}))


def test_what_stands_in_itself_is_described_once() -> None:
    """A structure that contains itself many times over takes no longer than it has parts."""
    around: dict[str, Any] = {"name": "around"}
    around |= {"self": around, "list": [around, around, {"again": around}], "pair": (around, around)}
    parent = Node("parent")
    parent.children = [Node(str(number), parent) for number in range(50)]

    assert {"shown": "<circular reference>"} == plain(around)["self"]
    assert 50 == len(plain(parent)["children"])


def test_what_has_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few lists that are in each other twice would have more parts than there is time."""
    monkeypatch.setattr("batonpass.handoff.tools.json_values._MOST_PARTS", 1000)
    value: list[Any] = ["ha"]
    for _ in range(40):
        value = [value, value]

    with pytest.raises(InvalidValueError, match="more than 1,000 parts"):
        plain(value)


@pytest.mark.parametrize("levels", [59, 61, 100, 100_000])
def test_depth_is_no_obstacle(levels: int) -> None:
    """What is nested deeper than anybody reads is cut off there."""
    (value,) = nested(levels)

    assert describe({"value": value})


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY.keys())
def test_text_stays_as_it_is(text: str) -> None:
    """Text is described as it was written."""
    assert {"text": text} == json.loads(describe({"text": text}))


def test_half_a_character_is_spelled_out() -> None:
    """What is not Unicode is described in a way that is."""
    assert {"text": "half \\ud83d a character"} == json.loads(describe({"text": LONE_SURROGATE}))


@given(JSON_VALUES)
def test_equal_values_are_described_equally(value: object) -> None:
    """The description does not depend on the order of keys, nor on the objects that hold the values."""
    assert describe({"value": value}) == describe({"value": json.loads(json.dumps(value))})


@given(JSON_VALUES)
def test_what_json_holds_is_given_back(value: object) -> None:
    """A later attempt gets a result that is equal to the first one's."""
    body, media_type = keep_result(value)

    assert media_type == SHOWN or value == give_back(body, media_type)


@pytest.mark.parametrize(
    ("value", "media_type"),
    [
        (b"\0\xff", BYTES),
        ("text", TEXT),
        ({"a": [1, 2.5, None, True]}, JSON),
        (None, JSON),
        (Level.HIGH, JSON),
        ((1, 2), SHOWN),
        ({1: "a"}, SHOWN),
        ({1, 2}, SHOWN),
        (math.nan, SHOWN),
        ([math.inf], SHOWN),
        (10**5000, SHOWN),
        (LONE_SURROGATE, SHOWN),
        ([LONE_SURROGATE], SHOWN),
        (object(), SHOWN),
        (Moody(a=1), SHOWN),
        (Unshowable(), SHOWN),
        (bytearray(b"a"), SHOWN),
        (next(nested(100_000)), SHOWN),
    ],
    ids=named,
)
def test_results_are_kept_in_a_form_that_comes_back_or_only_shown(value: object, media_type: str) -> None:
    """Nothing that a tool returns keeps the call from having an outcome."""
    body, kept_as = keep_result(value)

    assert media_type == kept_as
    if media_type == SHOWN:
        with pytest.raises(InvalidValueError, match="encode= and decode="):
            give_back(body, kept_as)
    else:
        assert value == give_back(body, kept_as)


def test_a_value_that_contains_itself_is_only_shown() -> None:
    """A recursive result is recorded all the same."""
    value: list[Any] = []
    value.append(value)

    assert (b"[[...]]", SHOWN) == keep_result(value)


def test_a_tool_can_say_how_its_result_is_kept() -> None:
    """With an encoder and a decoder, any value comes back."""
    body, media_type = keep_result({1, 2}, lambda value: ",".join(map(str, sorted(value))).encode())

    assert {1, 2} == give_back(body, media_type, lambda data: {int(part) for part in data.split(b",")})


@pytest.mark.parametrize("encode", [lambda _: 1 / 0, lambda _: "text", lambda _: 5], ids=["raises", "text", "number"])
def test_an_encoder_that_fails_keeps_no_call_from_its_outcome(encode: Any) -> None:  # noqa: ANN401 - wrong on purpose
    """A result that its encoder cannot take is shown, and is never decoded."""
    body, media_type = keep_result({1}, encode)

    assert SHOWN == media_type
    with pytest.raises(InvalidValueError):
        give_back(body, media_type, lambda data: data)


def test_readable_text_stays_and_the_rest_is_spelled_out() -> None:
    """Only what UTF-8 cannot hold is changed."""
    assert ["ä\0", "\\ud800"] == [readable("ä\0"), readable("\ud800")]


@pytest.mark.parametrize(
    "make", [object, lambda: [object()], lambda: lambda: None], ids=["alone", "inside", "a function"]
)
def test_where_a_value_lies_in_memory_is_not_told(make: Callable[[], object]) -> None:
    """Two of a kind look alike, so a call that is made again in another process is recognised."""
    one, other = make(), make()

    assert describe({"value": one}) == describe({"value": other})
    assert "0x" not in looks(one)
