"""JSON on a line: read in one way, written in one line."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters.mcp.messages.json_text import (
    JsonFaultError,
    TwinKeys,
    UnfitNumber,
    find_fault,
    fits_doubles,
    read_generously,
    read_json,
    split_line,
    write_json,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
DIGITS = st.text("0123456789", min_size=1, max_size=40)
NUMBERS = st.builds(
    lambda sign, whole, part, exponent: f"{sign}{whole.lstrip('0') or '0'}{part}{exponent}",
    st.sampled_from(["", "-"]),
    DIGITS,
    st.just("") | DIGITS.map(lambda digits: f".{digits}"),
    st.just("") | st.builds("{}{}".format, st.sampled_from(["e", "E", "e+", "E-"]), st.integers(0, 10**30)),
)


@given(VALUES, st.booleans())
@pytest.mark.slow
def test_what_is_written_is_what_was_read_on_one_line(value: Any, ascii_: bool) -> None:  # noqa: ANN401, FBT001 - JSON
    """By either writer, whatever it is; and no reader of lines finds more than one."""
    found = read_json(json.dumps(value, ensure_ascii=ascii_).encode())

    for line in (found.write(found.value), write_json(found.value)):
        assert (value, 1, []) == (json.loads(line), len(line.decode().splitlines()), split_line(line))


@given(NUMBERS)
def test_every_number_keeps_its_spelling(spelling: str) -> None:
    """And is either the double that it means, or said to be none."""
    found = read_json(spelling.encode())

    assert spelling.encode() == found.write(found.value)
    if not isinstance(found.value, UnfitNumber):
        assert math.isfinite(found.value)
        assert type(found.value)(spelling) == found.value
    assert [write_json(found.value)] == [write_json(one.value) for one in read_generously(spelling.encode())]


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(line: bytes) -> None:
    """And what a strict reader takes, a generous one takes as well, as the same."""
    generous = [found.value for found in read_generously(line)]
    try:
        found = read_json(line)
    except JsonFaultError:
        return

    assert [write_json(found.value)] == [write_json(value) for value in generous]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        pytest.param(b'{"a": 1, "a": 1}', "appears twice", id="a key that stands twice"),
        pytest.param(b'{"a": 1, "\\u0061": 1}', "appears twice", id="one that is escaped"),
        pytest.param(b'[{"x": [{"a": 1, "A": 1}]}]', "only by case", id="one that differs by case, somewhere"),
        pytest.param('{"k": 1, "\u212a": 1}'.encode(), "only by case", id="a Kelvin sign"),
        pytest.param(b'{"a": "\\ud800"}', "not Unicode", id="half a surrogate"),
        pytest.param(b'{"\\udfff": 1}', "not Unicode", id="half a surrogate in a key"),
        pytest.param(b"[" * 60 + b"]" * 60, "deeper than 50", id="what is nested deep"),
    ],
)
def test_what_two_readers_may_read_in_two_ways_has_a_fault(line: bytes, fault: str) -> None:
    """Wherever it stands."""
    assert fault in (find_fault(read_json(line).value) or "")


def test_a_whole_pair_of_surrogates_has_none() -> None:
    """It is one character, however it is written."""
    assert None is find_fault(read_json(b'["\\ud83d\\ude00", "\xf0\x9f\x98\x80"]').value)


def test_only_an_object_with_twins_is_marked() -> None:
    """What is around it is as any other."""
    found = read_json(b'{"a": {"b": 1, "B": 2}}')

    assert (False, True, False) == (
        isinstance(found.value, TwinKeys),
        isinstance(found.value["a"], TwinKeys),
        found.repeated,
    )


def test_a_number_that_no_double_holds_is_found_anywhere() -> None:
    """Whoever has only doubles cannot pass it on."""
    assert (False, True) == (
        fits_doubles(read_json(b'{"a": [1, {"b": 1e400}]}').value),
        fits_doubles(read_json(b'{"a": [1.50, 12345678901234567890]}').value),
    )


def test_whatever_can_be_read_can_be_written() -> None:
    """However deep it is nested, with a number of its own spelling and without."""
    for number in (b"1", b"1.50"):
        lines = [b'{"a":[' * depth + number + b"]}" * depth for depth in range(1, 600, 7)]
        read = [(line, found) for line in lines for found in read_generously(line)]

        assert 10 < len(read)
        assert [line for line, _ in read] == [found.write(found.value) for _, found in read]
