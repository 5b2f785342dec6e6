"""Reads lines of JSON that another program may still be writing. No line is trusted to be well-formed."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from batonpass.adapters.session_files.session_values import Record, SkippedLine

# Far longer than any line seen so far; an endless line must not exhaust the memory.
LONGEST: Final = 64 * 1024 * 1024
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)

_Line = TypeVar("_Line")


def find_decoded(path: Path, decode: Callable[[bytes], _Line | None]) -> Iterator[tuple[int, _Line] | SkippedLine]:
    """Yield the lines of a file with their numbers as `decode` reads them, and those that could not be read.

    A line is left out if `decode` returns None. A last line without a newline is still being written: it is used if it
    is complete, else left for the next time.
    """
    for number, _, data in raw_lines(path):
        if data is None:
            yield SkippedLine(path=path, line=number, what=f"is longer than {LONGEST >> 20} MiB")
        elif data.strip():
            try:
                line = mending(decode, data)
            except UNREADABLE as error:
                if data.endswith(b"\n"):
                    yield SkippedLine(path=path, line=number, what=why_unreadable(error))
                continue
            if line is not None:
                yield number, line


def decode_object(data: bytes) -> dict[str, Any] | None:
    """Return the object on a line; None if it is something else. Raises one of `UNREADABLE`."""
    found = msgspec.json.decode(data)
    return found if isinstance(found, dict) else None


def take_lines(
    path: Path,
    decode: Callable[[bytes], _Line | None],
    take: Callable[[_Line, str], Iterator[Record]],
    *,
    name: str | None = None,
) -> Iterator[Record | SkippedLine]:
    """Yield the values taken from each line of a file. A line that cannot be read is reported, not raised.

    `name`: of the file in places, if its own is that of others too.
    """
    try:
        for found in find_decoded(path, decode):
            if isinstance(found, SkippedLine):
                yield found
            else:
                yield from take(found[1], f"{name or path.name}:{found[0]}")
    except OSError as error:
        yield SkippedLine(path=path, line=0, what=f"cannot be read: {error.strerror}")


def raw_lines(path: Path) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield the lines of a file with number and offset; None for one that is too long."""
    with path.open("rb") as file:
        number = offset = 0
        while data := file.readline(LONGEST):
            number += 1
            is_cut = len(data) == LONGEST and not data.endswith(b"\n")
            while is_cut and (rest := file.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
            yield number, offset, None if is_cut else data
            offset = file.tell()


def mending(decode: Callable[[bytes], _Line | None], data: bytes) -> _Line | None:
    """Return a decoded line, also one with half of a surrogate pair. Raises one of `UNREADABLE`."""
    try:
        return decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # JavaScript may cut a text inside a surrogate pair and write half of it, which is not valid Unicode.
        return decode(_mended(data))


def read_time(text: object) -> datetime | None:
    """Return a time in UTC; None if it is invalid or before the epoch."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if at >= EPOCH else None


def read_milliseconds(number: object) -> datetime | None:
    """Return a time in UTC from milliseconds since the epoch; None if it is invalid."""
    if isinstance(number, bool) or not isinstance(number, int | float) or number < 0:
        return None
    try:
        return datetime.fromtimestamp(number / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def why_unreadable(error: Exception) -> str:
    """Return why a line could not be read, in words."""
    if isinstance(error, RecursionError):
        return "is nested too deep"
    if isinstance(error, msgspec.ValidationError):
        return f"is not as expected: {error}"
    return "is not JSON"


def _mended(data: bytes) -> bytes:
    text = json.dumps(json.loads(data), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
