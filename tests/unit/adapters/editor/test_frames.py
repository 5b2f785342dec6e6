"""Messages in and out; what cannot be a message is said to be none, or ends the stream."""

import io

import pytest

from batonpass.adapters.editor.frames import LARGEST, Garbled, MessageWriter, read_message
from batonpass.errors import InvalidValueError


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_messages_one_after_another() -> None:
    """With whichever headers, in whichever case."""
    stream = io.BytesIO(
        framed(b'{"a":1}') + b"content-type: x\r\ncontent-length: 7\r\n\r\n" + b'{"b":2}' + framed(b"[1]")
    )

    assert [{"a": 1}, {"b": 2}, [1], None] == [read_message(stream) for _ in range(4)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="half"),
        pytest.param(b"\xff\xfe", id="not UTF-8"),
        pytest.param(b"1", id="a number"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="nested too deeply"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_bad_body_is_no_end(body: bytes) -> None:
    """The next message is read all the same."""
    stream = io.BytesIO(framed(body) + framed(b"{}"))

    assert isinstance(read_message(stream), Garbled)
    assert {} == read_message(stream)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(b"Content-Length: %d\r\n\r\n" % (LARGEST + 1), id="larger than any message"),
        pytest.param(b"Content-Length: 99999999999999999999999\r\n\r\n", id="larger than any memory"),
        pytest.param(b"Content-Length: -1\r\n\r\n", id="negative"),
        pytest.param("Content-Length: ٣\r\n\r\n".encode(), id="digits of another script"),
        pytest.param(b"Content-Type: x\r\n\r\n", id="no length"),
        pytest.param(b"x" * 5000, id="a header without an end"),
        pytest.param(b"a: b\r\n" * 20, id="too many headers"),
    ],
)
def test_what_cannot_be_understood_is_given_up(given: bytes) -> None:
    """Nothing after it could be."""
    with pytest.raises(InvalidValueError):
        read_message(io.BytesIO(given))


def test_a_stream_that_breaks_off_has_ended() -> None:
    """In a header, or in a body."""
    assert [None, None, None] == [
        read_message(io.BytesIO(given)) for given in (b"", b"Content-Le", b"Content-Length: 9\r\n\r\n{}")
    ]


def test_a_client_that_has_gone_is_no_failure() -> None:
    """The next read ends the session."""
    sink = io.BytesIO()
    MessageWriter(sink).send({"id": 1})
    sink.close()
    MessageWriter(sink).send({"id": 2})
