"""Signs: words that must be in a text before a pattern can match in it.

A pattern of many alternatives is tried at every character and takes a millisecond for two pages. The words of a text
are split once, and to ask whether one of them is among some others takes a tenth of a microsecond. So each check says
which words its pattern cannot do without, alternative by alternative. Figures are looked for in bytes, in which a 0
stands for each digit: a pattern that begins with one certain character is found ten times as fast as one that begins
with any digit.

A sign that is there too often costs time; one that is missing hides a problem. `test_quick_signs.py` compares the
findings with and without signs.
"""

import re
from typing import Final

from batonpass.model.base.value import Value

# One bit for each sign: the signs of a text are one number, and those of several texts are the union.
ANNOUNCES: Final = 1 << 0  # an attachment, a list
PROMISES: Final = 1 << 1
BLANKS: Final = 1 << 2
DIGITS: Final = 1 << 3
DATES: Final = 1 << 4
SUMS: Final = 1 << 5
SHARES: Final = 1 << 6
COUNTS: Final = 1 << 7  # a number of things before a list of them
HOURS: Final = 1 << 8
IMPOSSIBLE: Final = 1 << 9  # a value that has bounds
MEASURES: Final = 1 << 10  # a figure with a unit
GIVEN: Final = 1 << 11  # a number of things that is taken for given
SPELLED: Final = 1 << 12  # a number in letters
TOTALS: Final = 1 << 13
RULES_OUT: Final = 1 << 14
ONLY: Final = 1 << 15
SUCCEEDS: Final = 1 << 16
FAILS: Final = 1 << 17
GONE: Final = 1 << 18
TALKS: Final = 1 << 19  # of something that was said before
AGREES: Final = 1 << 20
POINTS: Final = 1 << 21  # the, this, that
DECISIONS: Final = 1 << 22
NUMBERED: Final = 1 << 23  # a figure or a path
DAMAGED: Final = 1 << 24
UNFINISHED: Final = 1 << 25
GOES_BY: Final = 1 << 26  # a source that the work goes by, or is done to
LOCATED: Final = 1 << 27  # no sign but a fact: a source that is located is not missing
OTHERS: Final = 1 << 28
USUAL: Final = 1 << 29
FULL_NAMES: Final = 1 << 30

_ASCII: Final = bytes(range(128))
ZEROS: Final = bytes.maketrans(b"123456789", b"0" * 9)
_DIGIT: Final = re.compile(r"\d")
# Everything but ASCII letters is a space: a quotation mark or a dash beside a word must not hide it.
_SPACED: Final = bytes(code if code in b"abcdefghijklmnopqrstuvwxyz" else 32 for code in range(256))
_CAPITALS: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ" + bytes(range(97, 123)), b"A" * 26 + b"a" * 26)
_LONGEST_BEFORE: Final = 130  # characters: a word, the word for "number", and the path up to its first slash
_NUMBER_WORDS: Final = frozenset({b"no", b"no.", b"number", b"#"})


# What an alternative needs besides the word by which it was found: one word of each set, and one text of each list.
_Rest = tuple[list[frozenset[bytes]], list[list[str]]]


class TextForms(Value, frozen=True):
    """A text in the forms in which signs are looked for."""

    text: str
    lowered: str
    words: frozenset[bytes]  # those of its words, in small letters, that a sign is made of
    figures: bytes | None  # in small letters, with a 0 for each digit; None if it has digits of other scripts


# Words that stand in most texts. Which of the others a text has is asked first.
_COMMON: Final = frozenset(
    b"a about all an and are as at be been by can do each for from get give given has have he i if in is it its know"
    b" let ll make may must next no not of on one open or other our say see send set she should tell that the their"
    b" them then there they this to up use used was way we what when where which will with yet you your".split()
)


class WordSign:
    """Words of which some must be in a text: one of each group, in one of the alternatives."""

    __slots__ = ("_by_word", "_rare", "words")

    def __init__(self, *alternatives: str) -> None:
        """Take alternatives such as `will|shall & send|give`: one of the first two words, and one of the others.

        Words that are in many texts are given with their neighbours, in quotes: `'has not '|'have not '`.
        """
        # Each alternative is found by the words of that group which is in the fewest texts: most texts have none of
        # these, and then nothing else is asked.
        by_word: dict[bytes, list[_Rest]] = {}
        words: set[bytes] = set()
        for alternative in alternatives:
            groups = alternative.split("&")
            needed = [frozenset(group.encode().replace(b" ", b"").split(b"|")) for group in groups if "'" not in group]
            words.update(*needed)
            rarest = min(needed, key=lambda group: len(group & _COMMON) / len(group))
            needed.remove(rarest)
            rest = needed, [group.strip().strip("'").split("'|'") for group in groups if "'" in group]
            for word in rarest:
                by_word.setdefault(word, []).append(rest)
        self._by_word = by_word
        self._rare = frozenset(by_word)
        self.words = frozenset(words)

    def is_in(self, forms: TextForms) -> bool:
        """Return whether a text has the words that one of the alternatives needs."""
        words = forms.words
        if words.isdisjoint(self._rare):
            return False
        lowered = forms.lowered
        for word in self._rare & words:
            for groups, literals in self._by_word[word]:
                for group in groups:
                    if words.isdisjoint(group):
                        break
                else:
                    for pieces in literals:
                        for piece in pieces:
                            if piece in lowered:
                                break
                        else:
                            break
                    else:
                        return True
        return False


def fold(text: str) -> str:
    """Return a text in small letters, as far as patterns that ignore capitals see it."""
    lowered = text.lower()
    if lowered.isascii():
        return lowered
    # They take these for an i and an s as well.
    return lowered.replace("ı", "i").replace("i\u0307", "i").replace("ſ", "s")  # noqa: RUF001 - meant


def read_forms(text: str, wanted: frozenset[bytes]) -> TextForms:
    """Return the forms of a text, with those of its words that are wanted."""
    lowered = fold(text)
    encoded = lowered.encode()
    figures: bytes | None = encoded.translate(ZEROS)
    if len(encoded) != len(lowered) and _DIGIT.search(encoded.translate(None, _ASCII).decode()):
        figures = None
    return TextForms(text, lowered, wanted.intersection(encoded.translate(_SPACED).split()), figures)


def mark_figures(lowered: str) -> bytes | None:
    """Return a text as UTF-8 with a 0 for each digit; None if it has digits of other scripts, which have no sign."""
    encoded = lowered.encode()
    others = b"" if lowered.isascii() else encoded.translate(None, _ASCII)
    if others and _DIGIT.search(others.decode()):
        return None
    return encoded.translate(ZEROS)


def may_name_people(text: str) -> bool:
    """Return False if a text surely has no two words in a row that begin with a capital, as a full name has."""
    return b"a Aaa" in text.encode().translate(_CAPITALS)


def words_before_numbers(figures: bytes) -> list[bytes]:
    """Return the words after which a text has a number or a path: invoice 12, and perhaps invoice once more."""
    words: list[bytes] = []
    text = figures.replace(b"\n", b" ")
    digit, slash = text.find(b"0"), text.find(b"/")
    while digit >= 0 or slash >= 0:
        place = max(digit, slash) if digit < 0 or slash < 0 else min(digit, slash)
        before = text[max(0, place - _LONGEST_BEFORE) : text.rfind(b" ", 0, place) + 1].split()
        if len(before) > 1 and before[-1] in _NUMBER_WORDS:
            del before[-1]
        words += before[-1].translate(_SPACED).split()[-1:] if before else ()
        end = text.find(b" ", place)
        if end < 0:
            break
        # Each is looked for again only behind itself: a long text has many numbers and perhaps no path at all.
        if 0 <= digit < end:
            digit = text.find(b"0", end)
        if 0 <= slash < end:
            slash = text.find(b"/", end)
    return words
