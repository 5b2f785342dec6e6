"""The digest of a call: as RFC 8785 has it, numbers with a fraction included, and of everything that matters."""

import math
from hashlib import sha256
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batonpass.errors import InvalidValueError
from batonpass.model.grants.call import Call
from batonpass.wire.call_digest import digest_call, spell_float

CALL = Call("write_file", "write", "src/a.py", {"path": "src/a.py", "ratio": 0.5})

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF)), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_spelled_as_rfc_8785_has_it(number: float) -> None:
    """Any finite number, also where exponents begin."""
    assert rfc8785.dumps(number) == spell_float(number, "x")


@pytest.mark.parametrize("number", [1e20, 1e21, 123456789012345680000.0, 1e-6, 1e-7, 1.5e-7, 5e-324, -0.0, 100.0, 0.1])
def test_a_number_at_an_edge_is_spelled_as_rfc_8785_has_it(number: float) -> None:
    """Where the form changes."""
    assert rfc8785.dumps(number) == spell_float(number, "x")


@given(st.dictionaries(st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF)), values, max_size=3))
def test_the_digest_is_that_of_canonical_json(arguments: dict[str, Any]) -> None:
    """Anybody with RFC 8785 and sha256 computes the same."""
    whole: dict[str, Any] = {"action": "write", "arguments": arguments, "resource": "src/a.py", "tool": "write_file"}

    assert sha256(rfc8785.dumps(whole)).hexdigest() == digest_call(replace(CALL, arguments=arguments))


def test_everything_that_matters_changes_the_digest() -> None:
    """Tool, action, resource as it was sent, and each argument."""
    others = [
        replace(CALL, tool="append_file"),
        replace(CALL, action="read"),
        replace(CALL, resource="./src/a.py"),
        replace(CALL, arguments={"path": "src/a.py", "ratio": 0.25}),
        replace(CALL, arguments={"path": "src/a.py", "ratio": "0.5"}),
        replace(CALL, arguments={}),
    ]

    assert 7 == len({digest_call(call) for call in (CALL, *others)})


def nested(depth: int) -> object:
    """Return lists in lists."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "wrong",
    [math.nan, math.inf, 2**53, b"x", {1: 2}, {"\U0001f600": 1}, "\ud800", {1, 2}, object(), nested(102)],
    ids=[
        "no number",
        "infinity",
        "too large",
        "bytes",
        "a key",
        "a key beyond",
        "half a pair",
        "a set",
        "a thing",
        "deep",
    ],
)
def test_what_json_cannot_hold_exactly_has_no_digest(wrong: object) -> None:
    """What two programs would spell differently is refused."""
    with pytest.raises(InvalidValueError):
        digest_call(replace(CALL, arguments={"x": wrong}))
