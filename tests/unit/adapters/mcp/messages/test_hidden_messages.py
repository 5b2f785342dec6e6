"""What a line may say to some server: read the short way, where every reader finds the same in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.adapters.mcp.messages import hidden_messages
from batonpass.adapters.mcp.messages.hidden_messages import read_all_messages
from batonpass.adapters.mcp.messages.json_text import read_plain_object, write_json
from batonpass.adapters.mcp.messages.message import Message
from tests.unit.adapters.mcp.spellings import BUY, CASES, PING

NAMES = st.sampled_from(["id", "Id", "method", "Method", "params", "PARAMS", "name", "Name", "arguments", "\u017f"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ENDS = st.sampled_from(["", "\n", "\r\n", " ", "\t\n", "\x0b", "\x1f", "\u2028", "\x85", "\n\n", " {}", "1", "\0"])


def read_the_long_way(line: bytes) -> tuple[list[Message], list[Message]]:
    """Return what is found by the readers that notice everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden_messages, "read_plain_object", lambda _: None)
        return read_all_messages(line)


def told(messages: list[Message]) -> list[tuple[str, tuple[str, ...]]]:
    return [(repr(message.body), message.flags) for message in messages]


def require_alike(line: bytes) -> None:
    short, long = read_all_messages(line), read_the_long_way(line)

    assert [told(long[0]), told(long[1])] == [told(short[0]), told(short[1])]
    if (body := read_plain_object(line)) is not None:
        # It passes as it came: whoever reads that finds what would have been written anew.
        assert [write_json(body)] == [message.line for message in long[0]]


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.booleans(), ENDS)
def test_a_line_says_the_same_in_both_ways(message: dict[str, Any], ascii_: bool, end: str) -> None:  # noqa: FBT001 - drawn
    """Whatever its keys and its end are, and however it is spelled."""
    require_alike(f"{json.dumps(message, ensure_ascii=ascii_)}{end}".encode("utf-8", "replace"))


@given(st.binary(max_size=40) | st.text('{}[]":,0123456789.-eE \\u"a\r\n', max_size=30).map(str.encode))
def test_any_bytes_say_the_same_in_both_ways(line: bytes) -> None:
    """Also what is no message at all."""
    require_alike(line)
    require_alike(b"{" + line)


@pytest.mark.parametrize("line", CASES)
def test_what_is_hidden_is_found_in_both_ways(line: bytes) -> None:
    """None of the lines that bring a call past somebody is taken the short way as something else."""
    require_alike(line)


@pytest.mark.parametrize("message", [BUY, PING], ids=["a call", "a request"])
def test_most_messages_take_the_short_way(message: dict[str, Any]) -> None:
    """With every number and text that is spelled as everybody spells it."""
    body = message | {"params": {"arguments": {"n": [1, -2, 2.5, True, None], "text": "äöü"}}}

    assert body == read_plain_object(json.dumps(body).encode())


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b'{"a": 1, "A": 2}', id="keys that differ by case"),
        pytest.param(b'{"a": 1, "a": 1}', id="a key that stands twice"),
        pytest.param(b'{"a": -0}', id="a nought below nought"),
        pytest.param(b'{"a": 1.50}', id="a number with a nought behind it"),
        pytest.param(b'{"a": 1e400}', id="a number that no double holds"),
        pytest.param(b'{"a": 1}\r', id="a carriage return"),
        pytest.param('{"a": "\u2028"}'.encode(), id="a line separator in a text"),
        pytest.param(b'{"a": 1} {}', id="something behind it"),
        pytest.param('{"a": 1}'.encode("utf-16"), id="another encoding"),
        pytest.param('{"a": 1}'.encode("utf-16-le"), id="another encoding without a mark"),
        pytest.param(b'{"a": "\xff"}', id="no UTF-8"),
        pytest.param(b"[{}]", id="a batch"),
        pytest.param(b"{", id="nothing whole"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_somebody_may_read_otherwise_does_not(line: bytes) -> None:
    """It is left to the readers that notice such things."""
    assert read_plain_object(line) is None
