"""The generous reader of an observing proxy: it finds everything that some server may read in a line.

An observing proxy passes bytes on unchanged. Some servers end a line at a carriage return, some read several values
from one line. Of two equal keys some take the first and some the last, and some ignore case.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from batonpass.adapters.mcp.messages.json_text import (
    JsonLine,
    TwinKeys,
    read_generously,
    read_plain_object,
    split_line,
    write_json,
)
from batonpass.adapters.mcp.messages.message import OWN_KEYS, OWN_PARAMS, Message

# Flags of calls that arrived in such a way.
SPLIT: Final = "mcp.split-line"
AMBIGUOUS: Final = "mcp.ambiguous"

_KEYS_BY_CASE: Final = {name.casefold(): name for name in OWN_KEYS}
_PARAMS_BY_CASE: Final = {name.casefold(): name for name in OWN_PARAMS}


def read_messages(line: bytes) -> Iterator[Message]:
    """Yield the message on a line, or each message of a batch. An unreadable line is one message without a body."""
    return _told(line, list(read_generously(line)))


def read_all_messages(line: bytes) -> tuple[list[Message], list[Message]]:
    """Return the messages on a line, and the further messages that some reader may find, with a flag that says why."""
    body = read_plain_object(line)
    if body is not None and _is_named_alike(body):
        # As it came: nothing in it can be read in two ways, so it need not be written anew.
        return [Message(line, body)], []
    found = list(read_generously(line))
    told = list(_told(line, found))
    known = {message.line for message in told}
    hidden: list[Message] = []
    for message in _find_hidden(line, found):
        if message.body is not None and message.line not in known:
            known.add(message.line)
            hidden.append(message)
    return told, hidden


def _told(line: bytes, found: list[JsonLine]) -> Iterator[Message]:
    if len(found) != 1 or found[0].value == []:
        yield Message(line, None)
        return
    returns = (SPLIT,) if b"\r" in line else ()
    for message in _messages_in(found):
        twins = (AMBIGUOUS,) if found[0].twins and _has_twins(message.body) else ()
        yield replace(message, flags=(*returns, *twins)) if returns or twins else message


def _find_hidden(line: bytes, read: list[JsonLine]) -> Iterator[Message]:
    pieces = split_line(line)
    found = [*read, *(value for piece in pieces for value in read_generously(piece))]
    if len(found) > 1:
        yield from (replace(message, flags=(SPLIT,)) for message in _messages_in(found))
    if any(value.repeated for value in found):
        first = _messages_in(value for piece in (line, *pieces) for value in read_generously(piece, first=True))
        yield from (replace(message, flags=(AMBIGUOUS,)) for message in first)
    for value in found:
        for each in _parts_of(value):
            if isinstance(each, dict):
                yield from _ignoring_case(each)


def _messages_in(found: Iterable[JsonLine]) -> Iterator[Message]:
    for value in found:
        for each in _parts_of(value):
            yield Message(value.write(each), each if isinstance(each, dict) else None)


def _parts_of(found: JsonLine) -> list[Any]:
    return found.value if isinstance(found.value, list) else [found.value]


def _ignoring_case(body: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the message that a server reads if it ignores case, if that differs. The last of equal keys counts."""
    read = _folded(body, _KEYS_BY_CASE)
    if isinstance(params := read.get("params"), dict):
        read["params"] = _folded(params, _PARAMS_BY_CASE)
    if read.keys() != body.keys() or read.get("params") != body.get("params"):
        yield Message(write_json(read), read, flags=(AMBIGUOUS,))


def _is_named_alike(body: Mapping[str, Any]) -> bool:
    """Return whether a server that ignores case finds the same keys in a message."""
    params = body.get("params")
    if OWN_KEYS.issuperset(body) and (type(params) is not dict or OWN_PARAMS.issuperset(params)):
        return True
    return next(_ignoring_case(body), None) is None


def _folded(table: Mapping[str, Any], own: Mapping[str, str]) -> dict[str, Any]:
    return {own.get(name.casefold(), name): value for name, value in table.items()}


def _has_twins(value: object) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, TwinKeys):
            return True
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return False
