"""Reads the lines of a transcript one at a time. No line is trusted to be well-formed."""

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from batonpass.adapters.claude_code.transcripts.transcript_values import SkippedLine

# Far longer than any line seen so far; an endless line must not exhaust the memory.
_LONGEST: Final = 64 * 1024 * 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# All other kinds (snapshots, requests, progress, titles, future ones) contain nothing that we keep.
_USED: Final = frozenset({"user", "assistant", "attachment"})
_FIRST_LINES: Final = 64
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


class PlacedLine(Struct, frozen=True, kw_only=True):
    """A line and its position in the file; `data` is the line without its newline."""

    line: "TranscriptLine"
    data: bytes
    offset: int  # in bytes
    number: int | None = None  # line number from 1; None if only the end of the file was read


class _Kind(Struct):
    type: str | None = None


class _Time(Struct):
    timestamp: str | None = None


class TranscriptMessage(Struct):
    """The message of a line."""

    content: str | list[dict[str, Any]] = ""


class MessageOrigin(Struct):
    """Where a message comes from."""

    kind: str | None = None


class Attachment(Struct, rename={"mode": "commandMode"}):
    """Something attached to the conversation, such as words typed while the model was working."""

    type: str | None = None
    prompt: str | list[dict[str, Any]] = ""
    mode: str | None = None
    origin: MessageOrigin | None = None


class TranscriptLine(Struct, rename="camel"):
    """The fields of a line that we use. Any may be missing, depending on the version that wrote it."""

    type: str
    uuid: str | None = None
    parent_uuid: str | None = None
    agent_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    is_visible_in_transcript_only: bool = False
    prompt_id: str | None = None
    prompt_source: str | None = None
    origin: MessageOrigin | None = None
    tool_denial_kind: str | None = None
    tool_use_result: Any = None
    message: TranscriptMessage | None = None
    attachment: Attachment | None = None

    @property
    def at(self) -> datetime | None:
        """Return when the line was written; None if that cannot be read."""
        return read_time(self.timestamp)


_DECODE_KIND: Final = msgspec.json.Decoder(_Kind).decode
_DECODE_TIME: Final = msgspec.json.Decoder(_Time).decode
_DECODE_LINE: Final = msgspec.json.Decoder(TranscriptLine).decode


def read_time(text: str | None) -> datetime | None:
    """Return a time in UTC; None if it is invalid or before the epoch."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if at >= _EPOCH else None


def find_lines(path: Path) -> Iterator[tuple[int, TranscriptLine] | SkippedLine]:
    """Yield the used lines of a transcript with their numbers, and those that could not be read.

    A last line without a newline is still being written: it is used if it is complete, else left for the next time.
    """
    for number, _, data in _raw_lines(path):
        if data is None:
            yield SkippedLine(path=path, line=number, what=f"is longer than {_LONGEST >> 20} MiB")
        elif data.strip():
            try:
                line = _read(data)
            except _UNREADABLE as error:
                if data.endswith(b"\n"):
                    yield SkippedLine(path=path, line=number, what=_why(error))
                continue
            if line is not None:
                yield number, line


def find_last_lines(path: Path, size: int) -> Iterator[TranscriptLine]:
    """Yield the used lines in the last bytes of a transcript; unreadable ones are skipped."""
    return (placed.line for placed in find_last_placed(path, size))


def find_last_placed(path: Path, size: int) -> Iterator[PlacedLine]:
    """Yield the used lines in the last bytes of a transcript, with their offsets."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - size))
            tail = file.read(size)
    except OSError:
        return
    # The first line is cut off, unless the whole file was read.
    offset = max(0, length - size)
    for number, data in enumerate(tail.split(b"\n")):
        if number or length <= size:
            with contextlib.suppress(*_UNREADABLE):
                if data.strip() and (line := _read(data)) is not None:
                    yield PlacedLine(line=line, data=data, offset=offset)
        offset += len(data) + 1


def find_placed(path: Path, mention: bytes) -> Iterator[PlacedLine]:
    """Yield the used lines of a transcript that contain these bytes; unreadable ones are skipped."""
    with contextlib.suppress(OSError):
        for number, offset, data in _raw_lines(path):
            if data is not None and mention in data:
                with contextlib.suppress(*_UNREADABLE):
                    if (line := _read(data)) is not None:
                        yield PlacedLine(line=line, data=data.removesuffix(b"\n"), offset=offset, number=number)


def find_uuids(path: Path) -> Iterator[str]:
    """Yield the ids of the used lines of a transcript."""
    with contextlib.suppress(OSError):
        for found in find_lines(path):
            if not isinstance(found, SkippedLine) and found[1].uuid is not None:
                yield found[1].uuid


def began_at(path: Path) -> datetime:
    """Return the first time in a transcript, on any of its first lines; the epoch if there is none."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        for _ in range(_FIRST_LINES):
            with contextlib.suppress(*_UNREADABLE):
                if (at := read_time(_DECODE_TIME(file.readline(_LONGEST)).timestamp)) is not None:
                    return at
    return _EPOCH


def _raw_lines(path: Path) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield the lines of a file with number and offset; None for one that is too long."""
    with path.open("rb") as file:
        number = offset = 0
        while data := file.readline(_LONGEST):
            number += 1
            is_cut = len(data) == _LONGEST and not data.endswith(b"\n")
            while is_cut and (rest := file.readline(_LONGEST)) and not rest.endswith(b"\n"):
                pass
            yield number, offset, None if is_cut else data
            offset = file.tell()


def _read(data: bytes) -> TranscriptLine | None:
    """Return a line if its kind is used. Raises one of `_UNREADABLE`."""
    try:
        if not _is_used(data):
            return None
        return _DECODE_LINE(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # JavaScript may cut a text inside a surrogate pair and write half of it, which is not valid Unicode.
        mended = _mended(data)
        return _DECODE_LINE(mended) if _is_used(mended) else None


def _is_used(data: bytes) -> bool:
    try:
        return _DECODE_KIND(data).type in _USED
    except msgspec.ValidationError:
        return False  # not an object, or a kind that is not text


def _mended(data: bytes) -> bytes:
    text = json.dumps(json.loads(data), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deep"
    if isinstance(error, msgspec.ValidationError):
        return f"is not as expected: {error}"
    return "is not JSON"
