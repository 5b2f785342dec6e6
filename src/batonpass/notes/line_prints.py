"""Fingerprints of a line with its neighbours: they recognise a line in a commit that repeats another.

One print stands for two lines that follow each other, so a line has one with the line above it and one with the line
below it, and a row of n lines has n + 1. Nobody can read a line from them, but a reader who guesses two lines can check
the guess.
"""

import itertools
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from batonpass.attribution.changes.mark import squeezed
from batonpass.errors import InvalidValueError
from batonpass.notes.line_ranges import LineRanges

PRINT_BYTES: Final = 6
_EDGE: Final = "\0"  # before the first line and after the last


def pair_print(above: str, below: str) -> bytes:
    """Return the print of two adjacent lines; white space does not count, so that a formatter changes nothing."""
    words = f"{squeezed(above)}\n{squeezed(below)}"
    return sha256(words.encode("utf-8", "surrogateescape")).digest()[:PRINT_BYTES]


def prints_of(lines: Sequence[str]) -> list[bytes]:
    """Return the prints of a text: with the line above for each line, and one more for the end."""
    whole = (_EDGE, *lines, _EDGE)
    return [pair_print(above, below) for above, below in itertools.pairwise(whole)]


def write_prints(lines: Sequence[str], ranges: LineRanges) -> str:
    """Return the prints of some lines of a text, range by range."""
    prints = prints_of(lines)
    return urlsafe_b64encode(
        b"".join(mark for first, last in ranges.ranges for mark in prints[first - 1 : last + 1])
    ).decode("ascii")


def read_prints(text: str, ranges: LineRanges) -> dict[int, tuple[bytes, bytes]]:
    """Return for each line its prints with the line above and the line below. Raises `InvalidValueError`."""
    try:
        data = urlsafe_b64decode(text.encode("ascii"))
    except ValueError:
        raise InvalidValueError("prints", "are not base64") from None
    # The ranges are only now worth expanding: the text is as long as they are.
    if len(data) != PRINT_BYTES * (ranges.size + len(ranges.ranges)):
        raise InvalidValueError("prints", "do not fit the lines")
    marks = [data[start : start + PRINT_BYTES] for start in range(0, len(data), PRINT_BYTES)]
    found: dict[int, tuple[bytes, bytes]] = {}
    at = 0
    for first, last in ranges.ranges:
        for number in range(first, last + 1):
            found[number] = marks[at], marks[at + 1]
            at += 1
        at += 1
    return found
