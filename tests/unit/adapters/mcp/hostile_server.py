"""A server that reads lines as no other does: where it ends a line, and which of two keys counts, is its own habit.

As a program it takes its habits as arguments, answers every request, and writes down the calls that it found.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

Found: TypeAlias = tuple[str, Any]  # the name of a tool, and its arguments
Pairs: TypeAlias = list[tuple[str, Any]]

SPLITTERS: dict[str, Callable[[str], list[str]]] = {
    "line feeds": lambda text: text.split("\n"),
    "carriage returns": lambda text: re.split("\r\n|\r|\n", text),
    "all separators": str.splitlines,
    "streams": lambda text: [text],
}
READERS: dict[str, Callable[[Pairs], dict[str, Any]]] = {
    "the last key": dict,
    "the first key": lambda pairs: dict(reversed(pairs)),
    "any case": lambda pairs: {name.casefold(): value for name, value in pairs},
}


def find_calls(data: bytes, splitter: str, reader: str) -> list[Found]:
    """Return the calls that a server with these habits finds in what it was sent."""
    return list(map(_call, filter(_is_call, find_messages(data, splitter, reader))))


def find_messages(data: bytes, splitter: str, reader: str) -> Iterator[dict[str, Any]]:
    """Yield all messages that a server with these habits finds in what it was sent."""
    decoder = json.JSONDecoder(object_pairs_hook=READERS[reader], strict=False)
    for line in SPLITTERS[splitter](data.decode("utf-8", "replace").removeprefix("\ufeff")):
        for value in _values(decoder, line, several=splitter == "streams"):
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict))


def _values(decoder: json.JSONDecoder, text: str, *, several: bool) -> Iterator[Any]:
    left = text.strip()
    while left:
        try:
            value, end = decoder.raw_decode(left)
        except (ValueError, RecursionError):
            return
        if not several and left[end:].strip():
            return
        yield value
        left = left[end:].strip()


def _is_call(message: dict[str, Any]) -> bool:
    return message.get("method") == "tools/call" and isinstance(message.get("params"), dict)


def _call(message: dict[str, Any]) -> Found:
    return str(message["params"].get("name")), message["params"].get("arguments")


def serve(splitter: str, reader: str, notes: Path) -> None:
    """Answer everything, line by line as this server sees lines."""
    for line in sys.stdin.buffer:
        for message in find_messages(line, splitter, reader):
            if _is_call(message):
                with notes.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(_call(message)) + "\n")
            if "id" in message:
                result = {"content": [{"type": "text", "text": "done"}]}
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
