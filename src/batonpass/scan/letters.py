"""Reduces a text to its letters and digits, and maps positions back to the original.

Texts are compared by letters and digits alone, as they look: spaces, punctuation, case and invisible characters make no
difference. To mark a match in the original text, its position must be found again.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from batonpass.scan.text_forms import to_plain

_OTHER: Final = re.compile(r"[\W_]+")
_RUN: Final = re.compile(r"[^\W_]+")
_NO_LETTERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())
# A word with non-ASCII characters is normalised alone, and in pieces, since a page may have no blanks.
_FOREIGN: Final = re.compile(r"[^\s]*[^\x00-\x7f][^\s]*")
_LONGEST_WORD: Final = 64


def read_plain(text: str) -> str:
    """Return a text in its normal form and lower case; a lone surrogate becomes a question mark."""
    return to_plain(text.encode("utf-8", "replace").decode())


def letters_of(plain: str) -> str:
    """Return the letters and digits of a text in normal form."""
    if plain.isascii():
        return plain.encode().translate(None, _NO_LETTERS).decode()
    return _OTHER.sub("", plain)


def squeeze(text: str) -> str:
    """Return the letters and digits of a text, normalised and in lower case."""
    return letters_of(read_plain(text))


class Reading:
    """A text, its normal form and its letters, with the mapping back to positions in the original."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain, self._written = _align(text)
        self.letters = letters_of(self.plain)

    @cached_property
    def _runs(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return the start of each run of letters: in `letters`, and in `plain`."""
        among, begins, done = array("L"), array("L"), 0
        for run in _RUN.finditer(self.plain):
            among.append(done)
            begins.append(run.start())
            done += run.end() - run.start()
        return among, begins

    def plain_at(self, letter: int) -> int:
        """Return the position of a letter in `plain`."""
        among, begins = self._runs
        run = bisect_right(among, letter) - 1
        return begins[run] + letter - among[run]

    def letter_at(self, place: int) -> int:
        """Return the number of letters before a position in `plain`."""
        among, begins = self._runs
        run = bisect_right(begins, place) - 1
        if run < 0:
            return 0
        end = among[run + 1] if run + 1 < len(among) else len(self.letters)
        return min(among[run] + place - begins[run], end)

    def start_from(self, letter: int) -> int:
        """Return the start of the first word at or after a letter; the end of the text counts as one."""
        among, _ = self._runs
        run = bisect_left(among, letter)
        return among[run] if run < len(among) else len(self.letters)

    def start_until(self, letter: int) -> int:
        """Return the start of the last word at or before a letter; the end of the text counts as one."""
        if letter >= len(self.letters):
            return len(self.letters)
        among, _ = self._runs
        return among[bisect_right(among, letter) - 1]

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text for a span of `plain`. Neither may be empty."""
        if self._written is None:
            return start, end
        last = self._written[end - 1]
        while self._written[end] <= last and end < len(self.plain):
            end += 1
        return self._written[start], self._written[end]


def _align(text: str) -> tuple[str, Sequence[int] | None]:
    """Return the normal form of a text, and for each of its characters and its end the original position."""
    if text.isascii():
        return text.lower(), None
    text = text.encode("utf-8", "replace").decode()
    parts: list[str] = []
    places = array("L")
    done = 0
    for found in _FOREIGN.finditer(text):
        parts.append(text[done : found.start()].lower())
        places.extend(range(done, found.start()))
        for start in range(found.start(), found.end(), _LONGEST_WORD):
            end = min(start + _LONGEST_WORD, found.end())
            _align_word(text, start, end, parts, places)
        done = found.end()
    parts.append(text[done:].lower())
    places.extend(range(done, len(text) + 1))
    return "".join(parts), places


def _align_word(text: str, start: int, end: int, parts: list[str], places: "array[int]") -> None:
    word = text[start:end]
    plain = to_plain(word)
    parts.append(plain)
    if len(plain) == len(word):
        places.extend(range(start, end))
        return
    each = [len(to_plain(character)) for character in word]
    if sum(each) == len(plain):
        places.extend(at for at, size in enumerate(each, start) for _ in range(size))
    else:
        # Some characters merge with their neighbours, so the word can only be marked as a whole.
        places.extend([start] * len(plain))
