"""Signs: what must be in a text before a pattern can find something in it.

A pattern of many alternatives is tried at every character and takes a millisecond for two pages. The words of a text
are split once, and to ask whether one of them is among some others takes a tenth of a microsecond. So each check says
which words its pattern cannot do without, alternative by alternative. Figures are looked for in bytes, in which a 0
stands for each digit: what begins with one certain character is found ten times as fast as what begins with any digit.

A sign that is there too often costs time; one that is missing hides a problem. `test_quick_signs.py` compares what is
found with and without signs.
"""

import re
from collections.abc import Set as AbstractSet
from typing import Final

_ASCII: Final = bytes(range(128))
_ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_DIGIT: Final = re.compile(r"\d")
# Everything but ASCII letters is a space: a quotation mark or a dash beside a word must not hide it.
_SPACED: Final = bytes(code if code in b"abcdefghijklmnopqrstuvwxyz" else 32 for code in range(256))
_CAPITALS: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ" + bytes(range(97, 123)), b"A" * 26 + b"a" * 26)
_LONGEST_BEFORE: Final = 130  # characters: a word, the word for "number", and the path up to its first slash
_NUMBER_WORDS: Final = frozenset({b"no", b"no.", b"number", b"#"})


class WordSign:
    """Words of which some must be in a text: one of each group, in one of the alternatives."""

    __slots__ = ("_alternatives",)

    def __init__(self, *alternatives: str) -> None:
        """Take alternatives such as `will|shall & send|give`: one of the first two words, and one of the others.

        Words that stand in many texts are given with what is beside them, in quotes: `'has not '|'have not '`.
        """
        self._alternatives = [
            (
                [frozenset(group.encode().replace(b" ", b"").split(b"|")) for group in groups if "'" not in group],
                [group.strip().strip("'").split("'|'") for group in groups if "'" in group],
            )
            for groups in (alternative.split("&") for alternative in alternatives)
        ]

    def is_in(self, words: AbstractSet[bytes], lowered: str) -> bool:
        """Return whether a text, and its words, have what one of the alternatives needs."""
        for groups, literals in self._alternatives:
            for group in groups:
                if words.isdisjoint(group):
                    break
            else:
                for pieces in literals:
                    if not any(map(lowered.__contains__, pieces)):
                        break
                else:
                    return True
        return False


def split_words(lowered: bytes) -> frozenset[bytes]:
    """Return the words of a text in small letters, as UTF-8."""
    return frozenset(lowered.translate(_SPACED).split())


def mark_figures(lowered: str) -> bytes | None:
    """Return a text as UTF-8 with a 0 for each digit; None if it has digits of other scripts, which have no sign."""
    encoded = lowered.encode()
    others = b"" if lowered.isascii() else encoded.translate(None, _ASCII)
    if others and _DIGIT.search(others.decode()):
        return None
    return encoded.translate(_ZEROS)


def has_digits(text: str) -> bool:
    """Return whether a text has digits of any script."""
    return any(map(text.__contains__, "0123456789")) or (not text.isascii() and _DIGIT.search(text) is not None)


def may_name_people(text: str) -> bool:
    """Return False if a text surely has no two words in a row that begin with a capital, as a full name has."""
    return b"a Aaa" in text.encode().translate(_CAPITALS)


def may_number_two(figures: bytes) -> bool:
    """Return False if texts surely have no two numbers or paths after the same word: invoice 12 and invoice 14."""
    seen: set[bytes] = set()
    text = figures.replace(b"\n", b" ")
    digit, slash = text.find(b"0"), text.find(b"/")
    while digit >= 0 or slash >= 0:
        place = max(digit, slash) if digit < 0 or slash < 0 else min(digit, slash)
        before = text[max(0, place - _LONGEST_BEFORE) : text.rfind(b" ", 0, place) + 1].split()
        if len(before) > 1 and before[-1] in _NUMBER_WORDS:
            del before[-1]
        for word in before[-1].translate(_SPACED).split()[-1:] if before else ():
            if word in seen:
                return True
            seen.add(word)
        end = text.find(b" ", place)
        digit, slash = (-1, -1) if end < 0 else (text.find(b"0", end), text.find(b"/", end))
    return False
