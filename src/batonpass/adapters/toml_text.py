"""Reads TOML with the position of every value, so that one value can be changed alone.

Each reading is compared with the standard library's: a text that both read differently is refused, not edited.
"""

import re
import tomllib
from typing import Any, Final

from batonpass.adapters.jsonc import Node

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_KEY: Final = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_SCALAR: Final = re.compile(r"[^\s,\]}#]+(?: [0-9][^\s,\]}#]*)?")  # a date and its time may have a blank between them
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")|\'\'\'.*?\'{3,5}(?!\')|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_CLOSED_BY: Final = {"[": "]", "{": "}"}
_NOWHERE: Final = 0  # a table has no place of its own: its keys may stand anywhere

Path = tuple[str, ...]


def read(text: str) -> Node:
    """Return the tables in a text. Raises `ValueError` if it is not TOML, or is written in a way that is not edited."""
    try:
        document = tomllib.loads(text)
        spans = _spans(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return _node(document, spans, ())


def _node(value: Any, spans: dict[Path, tuple[int, int, Any]], path: Path) -> Node:  # noqa: ANN401 - whatever TOML holds
    if path in spans:
        start, end, read_there = spans[path]
        if read_there != value:
            raise ValueError(f"{'.'.join(path)} is written in a way that is not edited")
        return Node(value, start, end)
    if not isinstance(value, dict):
        return Node(value, _NOWHERE, _NOWHERE)  # in an array of tables
    members = {name: _node(inner, spans, (*path, name)) for name, inner in value.items()}
    return Node(value, _NOWHERE, _NOWHERE, members)


def _spans(text: str) -> dict[Path, tuple[int, int, Any]]:
    """Return where the values of keys are, without those of arrays of tables."""
    found: dict[Path, tuple[int, int, Any]] = {}
    table: Path | None = ()
    at = _skip(text, 0)
    while at < len(text):
        if text.startswith("[[", at):
            at, table = _line_end(text, at), None
        elif text[at] == "[":
            table, at = _keys(text, at + 1)
            at = _line_end(text, at)
        else:
            keys, at = _keys(text, at)
            start = _after(_SPACE, text, at + 1)
            at = _value_end(text, start)
            if table is not None:
                value = tomllib.loads(f"x = {text[start:at]}")["x"]
                found[*table, *keys] = start, at, value
        at = _skip(text, at)
    return found


def _keys(text: str, at: int) -> tuple[Path, int]:
    """Return the names before a bracket or an equals sign, and its place."""
    names: list[str] = []
    while True:
        key = _KEY.match(text, _after(_SPACE, text, at))
        if key is None:
            raise ValueError(f"line {text.count(chr(10), 0, at) + 1}: a key is missing")
        names.append(next(iter(tomllib.loads(f"{key[0]} = 1"))))
        at = _after(_SPACE, text, key.end())
        if text[at : at + 1] != ".":
            return tuple(names), at
        at += 1


def _value_end(text: str, at: int) -> int:
    opening = text[at : at + 1]
    if (string := _STRING.match(text, at)) is not None:
        return string.end()
    if opening not in _CLOSED_BY or not opening:
        return _after(_SCALAR, text, at)
    waits = [_CLOSED_BY[opening]]
    at += 1
    while waits:
        at = _skip(text, at)
        letter = text[at : at + 1]
        if not letter:
            raise ValueError("a bracket is not closed")
        if (string := _STRING.match(text, at)) is not None:
            at = string.end()
            continue
        if letter == waits[-1]:
            waits.pop()
        elif letter in _CLOSED_BY:
            waits.append(_CLOSED_BY[letter])
        at += 1
    return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _skip(text: str, at: int) -> int:
    return _after(_BLANK, text, at)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
