"""A file as an editor has it, saved or not: changes as the protocol sends them, and its lines in the saved file."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from batonpass.attribution.changes.line_diff import match_lines
from batonpass.errors import InvalidValueError

_ENDS: Final = re.compile(r"\r\n|\n|\r")
_UTF16_WIDE: Final = 0xFFFF


class TextBuffer(Struct, frozen=True, kw_only=True):
    """The text of an open file."""

    text: str
    version: int = 0

    @property
    def lines(self) -> list[str]:
        """Return its lines without their ends."""
        return _ENDS.split(self.text)

    def changed(self, changes: Sequence[Mapping[str, Any]], version: int) -> "TextBuffer":
        """Return the buffer after these changes, one after the other. Raises `InvalidValueError`."""
        text = self.text
        for change in changes:
            given = change.get("text") if isinstance(change, Mapping) else None
            if not isinstance(given, str):
                raise InvalidValueError("contentChanges", "a change has no text")
            where = change.get("range")
            text = given if where is None else _spliced(text, where, given)
        return replace(self, text=text, version=version)


def map_lines(saved: Sequence[str], buffer: Sequence[str]) -> dict[int, int]:
    """Return for lines of a buffer, from 0, the same lines of the saved file; new lines are missing."""
    if list(saved) == list(buffer[: len(saved)]):
        return {number: number for number in range(len(saved))}
    blocks = match_lines(saved, buffer)
    return {block.new + step: block.old + step for block in blocks for step in range(block.size)}


def _spliced(text: str, where: Any, given: str) -> str:  # noqa: ANN401 - whatever a client sends
    starts = [0, *(found.end() for found in _ENDS.finditer(text))]
    first, last = (_offset(text, starts, _point(where, name)) for name in ("start", "end"))
    return text[: min(first, last)] + given + text[max(first, last) :]


def _point(where: Any, name: str) -> tuple[int, int]:  # noqa: ANN401 - whatever a client sends
    match where:
        case {**ends} if isinstance(ends.get(name), dict):
            return line_and_character(ends[name])
        case _:
            raise InvalidValueError("range", "has no start and end")


def line_and_character(position: Any) -> tuple[int, int]:  # noqa: ANN401 - whatever a client sends
    """Return a position of the protocol. Raises `InvalidValueError`."""
    match position:
        case {"line": int(line), "character": int(character)} if line >= 0 and character >= 0:
            return line, character
        case _:
            raise InvalidValueError("position", "is not a line and a character from 0")


def _offset(text: str, starts: Sequence[int], point: tuple[int, int]) -> int:
    """Return where a position is; one behind the end of its line or of the text means that end."""
    line, units = point
    if line >= len(starts):
        return len(text)
    start = starts[line]
    ends = _ENDS.search(text, start)
    end = len(text) if ends is None else ends.start()
    if text.isascii():
        return min(start + units, end)
    # The protocol counts in units of UTF-16.
    offset = start
    while units > 0 and offset < end:
        units -= 2 if ord(text[offset]) > _UTF16_WIDE else 1
        offset += 1
    return offset
