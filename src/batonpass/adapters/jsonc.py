"""Reads JSON with comments and the position of every value, so that one value can be changed alone."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

_BLANK: Final = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR: Final = re.compile(r"[^\s,\]}/]+")
_STRING: Final = json.JSONDecoder()
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


class Node(Struct, frozen=True):
    """A value with its position in the text, and its members if it is an object."""

    value: Any
    start: int
    end: int
    members: Mapping[str, "Node"] = field(default_factory=dict)

    def find(self, *names: str) -> "Node | None":
        """Return the value that a path of names leads to."""
        node: Node | None = self
        for name in names:
            node = None if node is None else node.members.get(name)
        return node


def read(text: str) -> Node:
    """Return the value in a text. Raises `ValueError` if it is not JSON or has a duplicate key."""
    node = _value(text, _skip(text, 0))
    if (rest := _skip(text, node.end)) != len(text):
        raise _error(text, rest, "there is text after the end")
    return node


def layout_of(text: str) -> tuple[str, str]:
    """Return the indentation and the newline that a text uses."""
    found = _INDENT.search(text)
    return found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n"


def _value(text: str, at: int) -> Node:
    match text[at : at + 1]:
        case "{":
            return _object(text, at)
        case "[":
            return _array(text, at)
        case '"':
            return _string(text, at)
        case _:
            found = _SCALAR.match(text, at)
            try:
                return Node(json.loads(found[0] if found else ""), at, found.end() if found else at)
            except ValueError:
                raise _error(text, at, "a value is missing") from None


def _string(text: str, at: int) -> Node:
    try:
        value, end = _STRING.raw_decode(text, at)
    except ValueError:
        raise _error(text, at, "a string is not closed") from None
    return Node(value, at, end)


def _object(text: str, start: int) -> Node:
    members: dict[str, Node] = {}
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _error(text, at, "a key in quotes is missing")
        key = _string(text, at)
        if key.value in members:
            raise _error(text, at, f"the key {key.value!r} is there twice")
        at = _skip(text, key.end)
        if text[at : at + 1] != ":":
            raise _error(text, at, "a colon is missing")
        members[key.value] = node = _value(text, _skip(text, at + 1))
        at = _next(text, node.end, "}")
    return Node({name: node.value for name, node in members.items()}, start, at + 1, members)


def _array(text: str, start: int) -> Node:
    values = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        node = _value(text, at)
        values.append(node.value)
        at = _next(text, node.end, "]")
    return Node(values, start, at + 1)


def _next(text: str, at: int, end: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != end:
        raise _error(text, at, f"a comma or {end} is missing")
    return at


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _error(text: str, at: int, problem: str) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, at) + 1}: {problem}")
