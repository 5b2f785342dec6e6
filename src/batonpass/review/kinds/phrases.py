"""Phrases that the sentences of several findings share."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

_LISTED: Final = 3
_QUOTED: Final = 80


def times(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count} {noun}{'s' * (count != 1)}"


def listed(names: Iterable[str]) -> str:
    """Return the first names, each once, and how many more there are."""
    every = list(dict.fromkeys(names))
    more = len(every) - _LISTED
    return ", ".join([*islice(every, _LISTED), *([f"and {more} more"] if more > 0 else [])])


def quoted(words: str) -> str:
    """Return the beginning of a text, in one line and in quotes."""
    line = " ".join(words.split())
    return f'"{line}"' if len(line) <= _QUOTED else f'"{line[: _QUOTED - 1].rstrip()}…"'
