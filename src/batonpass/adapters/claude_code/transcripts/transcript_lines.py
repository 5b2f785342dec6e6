"""Reads the lines of a transcript one at a time. No line is trusted to be well-formed."""

import contextlib
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from batonpass.adapters.session_files.json_lines import (
    EPOCH,
    LONGEST,
    UNREADABLE,
    find_decoded,
    mending,
    raw_lines,
    read_time,
)
from batonpass.adapters.session_files.session_values import SkippedLine

# All other kinds (snapshots, requests, progress, titles, future ones) contain nothing that we keep.
_USED: Final = frozenset({"user", "assistant", "attachment"})
_FIRST_LINES: Final = 64
_TAIL: Final = 256 * 1024  # bytes: the message of a call that was just made


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
    model: str | None = None


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


def find_lines(path: Path) -> Iterator[tuple[int, TranscriptLine] | SkippedLine]:
    """Yield the used lines of a transcript with their numbers, and those that could not be read."""
    return find_decoded(path, _used_line)


def find_last_lines(path: Path, size: int) -> Iterator[TranscriptLine]:
    """Yield the used lines in the last bytes of a transcript; unreadable ones are skipped."""
    return (placed.line for placed in find_last_placed(path, size))


def find_model(path: Path | None, call: str) -> str | None:
    """Return the model that made a call: its message, near the end, says so; None if the message is not there.

    The hooks of Claude Code do not tell.
    """
    for line in () if path is None else find_last_lines(path, _TAIL):
        message = line.message
        if line.type != "assistant" or message is None or isinstance(message.content, str):
            continue
        if any(block.get("type") == "tool_use" and block.get("id") == call for block in message.content):
            return message.model
    return None


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
            with contextlib.suppress(*UNREADABLE):
                if data.strip() and (line := _read(data)) is not None:
                    yield PlacedLine(line=line, data=data, offset=offset)
        offset += len(data) + 1


def find_placed(path: Path, mention: bytes) -> Iterator[PlacedLine]:
    """Yield the used lines of a transcript that contain these bytes; unreadable ones are skipped."""
    with contextlib.suppress(OSError):
        for number, offset, data in raw_lines(path):
            if data is not None and mention in data:
                with contextlib.suppress(*UNREADABLE):
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
            with contextlib.suppress(*UNREADABLE):
                if (at := read_time(_DECODE_TIME(file.readline(LONGEST)).timestamp)) is not None:
                    return at
    return EPOCH


def _read(data: bytes) -> TranscriptLine | None:
    """Return a line if its kind is used. Raises one of `UNREADABLE`."""
    return mending(_used_line, data)


def _used_line(data: bytes) -> TranscriptLine | None:
    return _DECODE_LINE(data) if _is_used(data) else None


def _is_used(data: bytes) -> bool:
    try:
        return _DECODE_KIND(data).type in _USED
    except msgspec.ValidationError:
        return False  # not an object, or a kind that is not text
