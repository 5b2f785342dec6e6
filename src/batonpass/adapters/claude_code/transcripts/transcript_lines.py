"""The lines of a transcript: one at a time, whatever they hold. Nothing here trusts what it reads."""

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

# Longer than anything that was seen, by far; a line without an end must not take all the memory.
_LONGEST: Final = 64 * 1024 * 1024
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# The others (snapshots, requests, progress, titles, and whatever comes next) say nothing that we keep.
_USED: Final = frozenset({"user", "assistant", "attachment"})


_FIRST_LINES: Final = 64


class PlacedLine(Struct, frozen=True, kw_only=True):
    """A line with its place in its file; `data` is all of it but its end."""

    line: "TranscriptLine"
    data: bytes
    offset: int  # where it begins, in bytes
    number: int | None = None  # from 1; None: only the end of the file was read


class _Kind(msgspec.Struct):
    type: str | None = None


class _Time(msgspec.Struct):
    timestamp: str | None = None


class TranscriptMessage(msgspec.Struct):
    """What was said, by whom."""

    role: str | None = None
    content: str | list[dict[str, Any]] = ""
    stop_reason: str | None = None


class MessageOrigin(msgspec.Struct):
    """Who put a message into the conversation."""

    kind: str | None = None


class Attachment(msgspec.Struct, rename={"mode": "commandMode"}):
    """What was put beside the conversation; of interest if a human typed it while the model was at work."""

    type: str | None = None
    prompt: str | list[dict[str, Any]] = ""
    mode: str | None = None
    origin: MessageOrigin | None = None


class TranscriptLine(msgspec.Struct, rename="camel"):
    """The fields of a line that we use. All may be missing: other versions wrote other lines."""

    type: str
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None
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
        """Return when it was written, if it says so in a way that can be read."""
        return read_time(self.timestamp)


_DECODE_KIND: Final = msgspec.json.Decoder(_Kind).decode
_DECODE_TIME: Final = msgspec.json.Decoder(_Time).decode
_DECODE_LINE: Final = msgspec.json.Decoder(TranscriptLine).decode


def read_time(text: str | None) -> datetime | None:
    """Return a time in UTC; None if it is none, or lies before the epoch."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if at >= _EPOCH else None


def find_lines(path: Path) -> Iterator[tuple[int, TranscriptLine] | SkippedLine]:
    """Yield the lines of a transcript that we use, with their numbers, and what could not be read.

    A last line without an end is still being written: it is used if it is whole, and else left for the next time.
    """
    with path.open("rb") as file:
        number = 0
        while data := file.readline(_LONGEST):
            number += 1
            ended = data.endswith(b"\n")
            if len(data) == _LONGEST and not ended:
                _skip(file)
                yield SkippedLine(path=path, line=number, what=f"is longer than {_LONGEST >> 20} MiB")
                continue
            if not data.strip():
                continue
            try:
                line = _read(data)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                if ended:
                    yield SkippedLine(path=path, line=number, what=_why(error))
                continue
            if line is not None:
                yield number, line


def find_last_lines(path: Path, size: int) -> Iterator[TranscriptLine]:
    """Yield those lines that we use of the last so many bytes of a transcript; what cannot be read is passed over."""
    return (placed.line for placed in find_last_placed(path, size))


def find_last_placed(path: Path, size: int) -> Iterator[PlacedLine]:
    """Yield those lines that we use of the last so many bytes of a transcript, with where they begin."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - size))
            tail = file.read(size)
    except OSError:
        return
    # The first one is cut, unless all of the file was read.
    offset = max(0, length - size)
    for number, data in enumerate(tail.split(b"\n")):
        if number or length <= size:
            with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
                if data.strip() and (line := _read(data)) is not None:
                    yield PlacedLine(line=line, data=data, offset=offset)
        offset += len(data) + 1


def find_placed(path: Path, mention: bytes) -> Iterator[PlacedLine]:
    """Yield those lines of a transcript that we use and that mention something; what cannot be read is passed over."""
    try:
        with path.open("rb") as file:
            number = offset = 0
            while data := file.readline(_LONGEST):
                number += 1
                if len(data) == _LONGEST and not data.endswith(b"\n"):
                    _skip(file)
                elif mention in data:
                    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
                        if (line := _read(data)) is not None:
                            yield PlacedLine(line=line, data=data.removesuffix(b"\n"), offset=offset, number=number)
                offset = file.tell()
    except OSError:
        return


def find_uuids(path: Path) -> Iterator[str]:
    """Yield the ids of the lines of a transcript that we use."""
    try:
        for found in find_lines(path):
            if not isinstance(found, SkippedLine) and found[1].uuid is not None:
                yield found[1].uuid
    except OSError:
        return


def began_at(path: Path) -> datetime:
    """Return the first time that stands in a transcript, whatever line it is on; the epoch if there is none."""
    try:
        with path.open("rb") as file:
            for _ in range(_FIRST_LINES):
                with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
                    if (at := read_time(_DECODE_TIME(file.readline(_LONGEST)).timestamp)) is not None:
                        return at
    except OSError:
        pass
    return _EPOCH


def _skip(file: Any) -> None:  # noqa: ANN401 - an open file
    while (rest := file.readline(_LONGEST)) and not rest.endswith(b"\n"):
        pass


def _read(data: bytes) -> TranscriptLine | None:
    """Return a line if it is of a kind that we use. Raises `ValueError` and its kin."""
    try:
        if not _is_used(data):
            return None
        return _DECODE_LINE(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # JavaScript cuts texts between two halves of a character and writes the half, which is not Unicode.
        mended = _mended(data)
        return _DECODE_LINE(mended) if _is_used(mended) else None


def _is_used(data: bytes) -> bool:
    try:
        return _DECODE_KIND(data).type in _USED
    except msgspec.ValidationError:
        return False  # a kind that is no text, or no object at all: of a version to come, or nobody's


def _mended(data: bytes) -> bytes:
    text = json.dumps(json.loads(data), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deep"
    if isinstance(error, msgspec.ValidationError):
        return f"is not as expected: {error}"
    return "is not JSON"
