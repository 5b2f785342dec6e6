"""Messages of the language server protocol on two streams: a header with a length, then JSON.

The writer is an editor, or a program that got hold of its pipe. So headers and bodies have a largest size, and a stream
that cannot be understood any more is given up.
"""

import threading
from typing import IO, Any, Final

import msgspec

from batonpass.errors import InvalidValueError

LARGEST: Final = 64 * 1024 * 1024
_LONGEST_HEADER: Final = 4096
_MOST_HEADERS: Final = 16
_LENGTH: Final = b"content-length"

_decoder: Final = msgspec.json.Decoder()


class Garbled:
    """A message whose body is not JSON."""


def read_message(stream: IO[bytes]) -> dict[str, Any] | list[Any] | Garbled | None:
    """Return the next message; None at the end. Raises `InvalidValueError` if nothing after it can be read either."""
    length = _read_length(stream)
    if length is None:
        return None
    body = _read_exactly(stream, length)
    if body is None:
        return None
    try:
        message = _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Garbled()
    return message if isinstance(message, dict | list) else Garbled()


def _read_length(stream: IO[bytes]) -> int | None:
    length: int | None = None
    for number in range(_MOST_HEADERS):
        line = stream.readline(_LONGEST_HEADER)
        if not line.endswith(b"\n"):
            if len(line) == _LONGEST_HEADER:
                raise InvalidValueError("header", f"is longer than {_LONGEST_HEADER} bytes")
            return None
        header = line.strip()
        if not header:
            if length is None and number:
                raise InvalidValueError("header", "has no Content-Length")
            if length is not None:
                return length
            continue
        name, _, value = header.partition(b":")
        if name.strip().lower() == _LENGTH:
            length = _as_length(value.strip())
    raise InvalidValueError("header", f"has more than {_MOST_HEADERS} lines")


def _as_length(value: bytes) -> int:
    if not value.isdigit() or len(value) > len(str(LARGEST)) or int(value) > LARGEST:
        raise InvalidValueError("Content-Length", f"is not a number up to {LARGEST}")
    return int(value)


def _read_exactly(stream: IO[bytes], length: int) -> bytes | None:
    parts, missing = [], length
    while missing:
        part = stream.read(missing)
        if not part:
            return None
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class MessageWriter:
    """Writes whole messages, from any thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Write one message. A client that has gone away is no failure of ours: the next read ends the session."""
        body = msgspec.json.encode({"jsonrpc": "2.0", **message})
        with self._lock:
            try:
                self._stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self._stream.flush()
            except (BrokenPipeError, ValueError):
                return
