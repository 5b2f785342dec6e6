"""The values in a file of JSON, one after the other: a value on each line, or one document with all of them.

A file of any size takes the memory of a few values. No value is trusted to be well-formed.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from batonpass.adapters.session_files.json_lines import LONGEST, UNREADABLE, raw_lines
from batonpass.adapters.session_files.session_values import SkippedLine

_LOOKED_AT: Final = 32  # lines, before the kind of the file is decided
_CHUNK: Final = 1 << 20
_LONGEST_NAME: Final = 64
_DEEPEST: Final = 16  # lists of values inside of lists of values; telemetry has three
_WHOLE: Final = msgspec.json.Decoder(msgspec.Raw).decode
_TOKEN: Final = re.compile(rb'["{}\[\]]')
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class JsonItem(Struct, frozen=True):
    """A value in a file: the number of its line, or 0 and the byte where it begins."""

    line: int
    byte: int
    data: bytes

    @property
    def place(self) -> str:
        """Return where it stands, if that is no line."""
        return "" if self.line else f"the value at byte {self.byte:,} "


def find_items(path: Path, *, ways: frozenset[str], units: frozenset[str]) -> Iterator[JsonItem | SkippedLine]:
    """Yield the values of a file, and the lines that could not be read.

    In a document, values are the objects in a list at the top or under one of the names in `units`, in objects that are
    reached by lists under the names in `ways`. A last line without a newline is left for the next time if it is not
    complete. Raises `OSError` if the file cannot be read.
    """
    if _is_lines(path):
        yield from _lines(path)
    else:
        yield from _Document(path, ways=ways, units=units).items()


def _is_lines(path: Path) -> bool:
    lines = islice((data for _, _, data in raw_lines(path) if data is None or data.strip()), _LOOKED_AT)
    first = next(lines, b"{}")
    if first is None or first.strip() == b"[":
        return False
    return any(data is not None and data.lstrip()[:1] in b"{[" and _is_whole(data) for data in (first, *lines))


def _is_whole(data: bytes) -> bool:
    try:
        _WHOLE(data)
    except UNREADABLE:
        return False
    return True


def _lines(path: Path) -> Iterator[JsonItem | SkippedLine]:
    for number, offset, data in raw_lines(path):
        if data is None:
            yield SkippedLine(path=path, line=number, what=f"is longer than {LONGEST >> 20} MiB")
        elif data.strip() and (data.endswith(b"\n") or _is_whole(data)):
            yield JsonItem(number, offset, data)


class _Document:
    """A file that is one document, while it is read."""

    def __init__(self, path: Path, *, ways: frozenset[str], units: frozenset[str]) -> None:
        self.path, self.ways, self.units = path, ways, units
        self.lists: list[bool | None] = []  # open: True a list of values, False one on the way, None an object
        self.depth = 0  # below the last of them
        self.start: int | None = None  # of the value under way
        self.name = ""  # of the member under way

    def items(self) -> Iterator[JsonItem | SkippedLine]:
        """Yield the values, with the memory of the largest."""
        text, base, at, chunk = b"", 0, 0, _CHUNK
        with self.path.open("rb") as file:
            while True:
                found = _TOKEN.search(text, at)
                end = None if found is None else self._end(text, found.start())
                if found is not None and end is not None:
                    chunk, at = _CHUNK, end
                    if (begun := self._take(text, found.start(), end)) is not None:
                        yield JsonItem(0, base + begun, text[begun:end])
                    continue
                at = len(text) if found is None else found.start()
                keep = at if self.start is None else self.start
                if len(text) - keep > LONGEST and self.start is not None:
                    yield self._skipped(base + keep, f"is longer than {LONGEST >> 20} MiB")
                    keep, self.start = at, None
                if len(text) - keep > LONGEST or not (more := file.read(chunk)):
                    break
                # A text without an end is looked at again with twice as much, so that its length costs no square.
                chunk = min(2 * chunk, LONGEST)
                text, base, at = text[keep:] + more, base + keep, at - keep
                self.start = None if self.start is None else 0
        if self.lists or self.depth:
            yield self._skipped(base + at, "is not there: the document ends, or cannot be read from here on")

    def _take(self, text: bytes, start: int, end: int) -> int | None:
        """Follow a text or a bracket; return where the value began that it ends, if it ends one."""
        match text[start : start + 1]:
            case b'"':
                if not self.depth:
                    self.name = text[start + 1 : min(end - 1, start + _LONGEST_NAME)].decode("ascii", "replace")
            case b"{" | b"[":
                self._open(start, is_list=text[start : start + 1] == b"[")
            case _:
                return self._close()
        return None

    def _end(self, text: bytes, start: int) -> int | None:
        if text[start] != ord('"'):
            return start + 1
        whole = _STRING.match(text, start)
        return None if whole is None else whole.end()

    def _open(self, start: int, *, is_list: bool) -> None:
        above = self.lists[-1] if self.lists else None
        if self.depth or len(self.lists) >= _DEEPEST:
            self.depth += 1
        elif is_list and (not self.lists or (above is None and self.name in self.ways | self.units)):
            self.lists.append(not self.lists or self.name in self.units)
        elif not is_list and (not self.lists or above is False):
            self.lists.append(None)
        else:
            self.depth, self.start = 1, start if above is True and not is_list else None

    def _close(self) -> int | None:
        """Leave a bracket; return where the value began that it ends, if it ends one."""
        if not self.depth:
            if self.lists:
                self.lists.pop()
            return None
        self.depth -= 1
        begun, self.start = (None, self.start) if self.depth else (self.start, None)
        return begun

    def _skipped(self, byte: int, what: str) -> SkippedLine:
        return SkippedLine(path=self.path, line=0, what=f"the value at byte {byte:,} {what}")
