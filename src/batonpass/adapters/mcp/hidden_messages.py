"""What a line may say to some server: a proxy that only watches passes bytes on, so it looks for all of it.

Some servers end a line at a carriage return, some read one value after another. Of two equal keys some take the first,
some the last, and some one that is equal but for its case.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from batonpass.adapters.mcp.json_text import JsonLine, TwinKeys, read_generously, split_line, write_json
from batonpass.adapters.mcp.messages import OWN_KEYS, OWN_PARAMS, Message

# Flags of calls that came in such a way.
SPLIT: Final = "mcp.split-line"
AMBIGUOUS: Final = "mcp.ambiguous"


def read_messages(line: bytes) -> Iterator[Message]:
    """Yield what stands on a line: one message, or each of a batch. What cannot be read is one without a body."""
    found = list(read_generously(line))
    if len(found) != 1 or found[0].value == []:
        yield Message(line, None)
        return
    returns = (SPLIT,) if b"\r" in line else ()
    for message in _messages_in(found):
        twins = (AMBIGUOUS,) if _has_twins(message.body) else ()
        yield replace(message, flags=(*returns, *twins))


def find_hidden(line: bytes) -> Iterator[Message]:
    """Yield what else a reader may find on a line besides `read_messages`, with a flag that says why."""
    known = {message.line for message in read_messages(line)}
    for message in _find_hidden(line):
        if message.body is not None and message.line not in known:
            known.add(message.line)
            yield message


def _find_hidden(line: bytes) -> Iterator[Message]:
    pieces = [line, *split_line(line)]
    found = [value for piece in pieces for value in read_generously(piece)]
    if len(found) > 1:
        yield from (replace(message, flags=(SPLIT,)) for message in _messages_in(found))
    if any(value.repeated for value in found):
        first = _messages_in(value for piece in pieces for value in read_generously(piece, first=True))
        yield from (replace(message, flags=(AMBIGUOUS,)) for message in first)
    for message in _messages_in(found):
        yield from _ignoring_case(message)


def _messages_in(found: Iterable[JsonLine]) -> Iterator[Message]:
    for line in found:
        for each in line.value if isinstance(line.value, list) else [line.value]:
            yield Message(line.write(each), each if isinstance(each, dict) else None)


def _ignoring_case(message: Message) -> Iterator[Message]:
    """Yield a message as a server reads it that does not mind case, if it finds other keys: the last of them counts."""
    if message.body is None:
        return
    body = _folded(message.body, OWN_KEYS)
    if isinstance(params := body.get("params"), dict):
        body["params"] = _folded(params, OWN_PARAMS)
    if body.keys() != message.body.keys() or body.get("params") != message.body.get("params"):
        yield Message(write_json(body), body, flags=(AMBIGUOUS,))


def _folded(table: Mapping[str, Any], own: frozenset[str]) -> dict[str, Any]:
    by_case = {name.casefold(): name for name in own}
    return {by_case.get(name.casefold(), name): value for name, value in table.items()}


def _has_twins(value: object) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, TwinKeys):
            return True
        if isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return False
