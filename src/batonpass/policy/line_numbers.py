"""The line of each key in a TOML document.

The parser of the standard library gives a line only for syntax errors. A wrong value needs its line as well. So this
walks through the parsed text again and notes where each key and element begins. It makes no decisions, and skips text
that it does not understand.
"""

import re
import tomllib
from collections.abc import Mapping
from typing import Final, TypeAlias

Path: TypeAlias = tuple[str | int, ...]  # keys, and element numbers from 0

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]*")


def find_lines(text: str) -> Mapping[Path, int]:
    """Return the line of every key, table and element, counted from 1."""
    return _Walk(text).walk()


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted = 0
        self._line = 1
        self._lines: dict[Path, int] = {}
        self._elements: dict[Path, int] = {}  # number of tables so far in an array of tables

    def walk(self) -> Mapping[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self._at < len(self._text):
            before = self._at
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
            if self._at == before:
                self._at += 1  # not TOML; the parser reports it
        return self._lines

    def _header(self) -> Path:
        array = self._text.startswith("[[", self._at)
        self._at += 2 if array else 1
        path: Path = ()
        keys = self._keys()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            self._note(path)
            if array and number == len(keys):
                self._elements[path] = self._elements.get(path, -1) + 1
            if path in self._elements:
                path = (*path, self._elements[path])
                self._note(path)
        self._at += 2 if array else 1
        return path

    def _pair(self, table: Path) -> None:
        path = table
        for key in self._keys():
            path = (*path, key)
            self._note(path)
        self._skip(_SPACE)
        if self._text.startswith("=", self._at):
            self._at += 1
        self._skip(_SPACE)
        self._value(path)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip(_SPACE)
            if (quoted := _STRING.match(self._text, self._at)) is not None:
                keys.append(_unquoted(quoted[0]))
                self._at = quoted.end()
            elif (bare := _BARE.match(self._text, self._at)) is not None:
                keys.append(bare[0])
                self._at = bare.end()
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _value(self, path: Path) -> None:
        match self._text[self._at : self._at + 1]:
            case "[":
                self._array(path)
            case "{":
                self._inline(path)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_SCALAR)

    def _array(self, path: Path) -> None:
        self._at += 1
        number, before = 0, -1
        while self._goes_on("]", before):
            before = self._at
            element = (*path, number)
            self._note(element)
            self._value(element)
            number += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        before = -1
        while self._goes_on("}", before):
            before = self._at
            self._pair(path)

    def _goes_on(self, end: str, before: int) -> bool:
        """Skip separators, and return whether another element follows the one that began at `before`."""
        self._skip(_BLANK)
        if self._text.startswith(",", self._at):
            self._at += 1
            self._skip(_BLANK)
        if self._text.startswith(end, self._at):
            self._at += 1
            return False
        # No progress means it is not TOML; stop, or this would never end.
        return before < self._at < len(self._text)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._at)
        self._at = self._at if found is None else found.end()

    def _note(self, path: Path) -> None:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        self._lines.setdefault(path, self._line)


def _unquoted(quoted: str) -> str:
    try:
        return str(tomllib.loads(f"key = {quoted}")["key"])
    except tomllib.TOMLDecodeError:
        return quoted
