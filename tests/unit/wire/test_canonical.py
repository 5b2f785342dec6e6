"""Canonical JSON: the same bytes as RFC 8785, for everything that the closed schema lets in."""

import json
import random
from collections import OrderedDict, UserDict, UserList, deque
from datetime import UTC, datetime
from enum import IntEnum
from hashlib import sha256
from types import MappingProxyType

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from batonpass.errors import InvalidValueError
from batonpass.model.base.lifecycle import State
from batonpass.wire.canonical import digest, encode

LARGEST = 2**53 - 1

# Every class of character that an escape, a sort order or an encoding could get wrong.
AWKWARD = [*map(chr, range(0x20)), *'"\\/\x7f\x80\x9féÿ\u2028\u2029\ue000\ufeff\uffff']
ASTRAL = ["😀", "\U00010000", "\U0010ffff"]
KEYS = st.one_of(
    st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=4),
    st.text(st.sampled_from(AWKWARD), max_size=3),
)
TEXTS = st.one_of(st.text(max_size=6), st.text(st.sampled_from(AWKWARD + ASTRAL), max_size=5))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-LARGEST, max_value=LARGEST),
    TEXTS,
)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)


class Author:
    """Writes documents of what `DOCUMENTS` is made of, a hundred times as fast: nobody has to make them smaller."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def document(self, leaves: int = 8) -> object:
        """Return something with at most so many leaves."""
        match self._random.choice(("scalar", "list", "object")) if leaves > 1 else "scalar":
            case "list":
                return [self.document(leaves // 2) for _ in range(self._random.randrange(4))]
            case "object":
                return {self._text(4, 0xFFFF): self.document(leaves // 2) for _ in range(self._random.randrange(4))}
        return self._random.choice((None, True, False, self._integer(), self._text(6, 0x10FFFF)))

    def _integer(self) -> int:
        return self._random.randrange(-LARGEST, LARGEST + 1) >> self._random.randrange(54)

    def _text(self, longest: int, last: int) -> str:
        awkward = self._random.random() < 0.5
        made = (
            self._random.choice(AWKWARD if last == 0xFFFF else AWKWARD + ASTRAL) if awkward else self._any(last)
            for _ in range(self._random.randrange(longest + 1))
        )
        return "".join(made)

    def _any(self, last: int) -> str:
        while 0xD800 <= (point := self._random.randrange(last + 1)) <= 0xDFFF:
            pass
        return chr(point)


def test_ten_thousand_documents_have_the_bytes_of_rfc_8785() -> None:
    """No byte differs from the reference implementation."""
    author = Author(8785)
    documents = [author.document() for _ in range(10_000)]

    assert [] == [document for document in documents if rfc8785.dumps(document) != encode(document)]  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS)
def test_the_bytes_are_those_of_rfc_8785(document: object) -> None:
    """If one differs, the smallest document is found in which it does."""
    assert rfc8785.dumps(document) == encode(document)  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS)
def test_the_bytes_mean_the_same_to_any_reader(document: object) -> None:
    """What was encoded is read back by a JSON parser that is not ours."""
    assert document == json.loads(encode(document))


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(KEYS, SCALARS, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_insertion_does_not_show(document: dict[str, object], random: object) -> None:
    """One value has one sequence of bytes."""
    items = list(document.items())
    random.shuffle(items)  # type: ignore[attr-defined]

    assert encode(document) == encode(OrderedDict(items))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"b": 1, "a": 2}, b'{"a":2,"b":1}', id="keys are sorted"),
        pytest.param({"\ue000": 1, "z": 2, "\u00e9": 3}, '{"z":2,"é":3,"\ue000":1}'.encode(), id="by code unit"),
        pytest.param("\x00\x1f\b\t\n\f\r", b'"\\u0000\\u001f\\b\\t\\n\\f\\r"', id="controls have one escape"),
        pytest.param('"\\/\x7f\u2028', '"\\"\\\\/\x7f\u2028"'.encode(), id="nothing else is escaped"),
        pytest.param("\U0001f600", "\U0001f600".join('""').encode(), id="astral text is UTF-8"),
        pytest.param([True, False, None, -0, LARGEST], b"[true,false,null,0,9007199254740991]", id="plain words"),
        pytest.param({}, b"{}", id="an empty object"),
        pytest.param((1, (2,)), b"[1,[2]]", id="a tuple is an array"),
        pytest.param(State.READY, b'"ready"', id="an enumerated text is its text"),
    ],
)
def test_examples_by_hand(value: object, expected: bytes) -> None:
    """What the standard says, byte by byte."""
    assert expected == encode(value)


class Number(IntEnum):
    """An enumeration of integers."""

    HUGE = 2**60


REFUSED = [
    pytest.param(1.5, "$", id="a floating-point number"),
    pytest.param(1.0, "$", id="a floating-point number without a fraction"),
    pytest.param({"a": [0, float("nan")]}, "$.a[1]", id="not a number"),
    pytest.param({"a": {"b": float("inf")}}, "$.a.b", id="infinity"),
    pytest.param({"n": 2**53}, "$.n", id="an integer of 2^53"),
    pytest.param([-(2**53)], "$[0]", id="a negative integer of 2^53"),
    pytest.param([Number.HUGE], "$[0]", id="an enumerated integer that is too large"),
    pytest.param({"a": {"\U0001f600": 1}}, "$.a", id="an astral key"),
    pytest.param({"a": [{"b\U00010000": 1}]}, "$.a[0]", id="an astral character inside a key"),
    pytest.param({1: "a"}, "$", id="a key that is a number"),
    pytest.param({None: "a"}, "$", id="a key that is nothing"),
    pytest.param({"a": b"bytes"}, "$.a", id="bytes"),
    pytest.param([bytearray(b"a")], "$[0]", id="a bytearray"),
    pytest.param([memoryview(b"a")], "$[0]", id="a memory view"),
    pytest.param([{1, 2}], "$[0]", id="a set, whose order is nobody's"),
    pytest.param(datetime(2026, 1, 1, tzinfo=UTC), "$", id="a time that is not text yet"),
    pytest.param(object(), "$", id="an object"),
    pytest.param([1 + 2j], "$[0]", id="a complex number"),
    pytest.param([range(3)], "$[0]", id="a range"),
    pytest.param([deque([1])], "$[0]", id="a deque"),
    pytest.param([UserList([1])], "$[0]", id="something like a list"),
    pytest.param({"a": UserDict(b=1)}, "$.a", id="something like a dictionary"),
    pytest.param({"a": MappingProxyType({"b": 1})}, "$.a", id="a view of a dictionary"),
]


@pytest.mark.parametrize(("value", "path"), REFUSED)
def test_what_has_no_canonical_form_is_refused_by_its_path(value: object, path: str) -> None:
    """The error is ours, and says where."""
    with pytest.raises(InvalidValueError) as refused:
        encode(value)

    assert path == refused.value.field


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("\ud800", id="a high one"),
        pytest.param({"a": ["b", "c\udfff"]}, id="a low one, deep inside"),
        pytest.param({"\ud83d": 1}, id="in a key"),
        pytest.param("\ude00\ud83d", id="a pair in the wrong order"),
    ],
)
def test_a_lone_surrogate_is_refused(value: object) -> None:
    """Text that is not Unicode has no bytes."""
    with pytest.raises(InvalidValueError, match="lone surrogate") as refused:
        encode(value)

    assert "$" == refused.value.field[0]


def nested(levels: int, *, in_objects: bool) -> object:
    """Return a scalar inside that many containers."""
    value: object = 1
    for _ in range(levels):
        value = {"a": value} if in_objects else [value]
    return value


@pytest.mark.parametrize("in_objects", [True, False], ids=["in objects", "in arrays"])
def test_what_is_nested_too_deep_is_refused(in_objects: bool) -> None:  # noqa: FBT001
    """A hundred levels are enough for anybody; a hundred thousand are refused as calmly as a hundred and one."""
    assert nested(100, in_objects=in_objects) == json.loads(encode(nested(100, in_objects=in_objects)))
    for levels in (101, 100_000):
        with pytest.raises(InvalidValueError, match="100 deep") as refused:
            encode(nested(levels, in_objects=in_objects))
        assert len(refused.value.field) <= 100


def test_a_value_that_holds_itself_is_refused() -> None:
    """A cycle is only another way to be too deep."""
    loop: list[object] = []
    loop.append(loop)

    with pytest.raises(InvalidValueError, match="100 deep"):
        encode(loop)


@given(st.binary(max_size=100))
def test_a_digest_is_sha256_in_lower_case(data: bytes) -> None:
    """Digests are written one way."""
    assert sha256(data).hexdigest() == digest(data)
