"""Passages: whether words of some texts stand in others, exactly or in another spelling, at a bounded cost.

A text is read as its letters and digits alone, as they look: spaces, punctuation, capitals and what nobody sees make
no difference. Of a long text, blocks at regular distances are kept; whoever copies a passage copies a block with it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, TypeVar

from batonpass.scan.normalise import to_plain

Name = TypeVar("Name")

BLOCK: Final = 24  # a passage of twice as many letters and digits, less one, holds a whole block
_MOST_BLOCKS: Final = 1 << 16  # of one text: above a million characters the blocks stand further apart
_MOST_KEPT: Final = 1 << 20  # characters of one text that are kept whole, for short values such as an account's number
_MOST_TEXTS: Final = 64
_MOST_LOOKED_AT: Final = 1 << 18  # characters of the values of one call
_MOST_VALUES: Final = 256  # short values of one call
_SHORTEST: Final = 8  # a short value with a digit in it, such as an account's number
_SHORTEST_WORDS: Final = 20  # a short value of letters only: fewer are a common phrase
_PASSAGE: Final = 2 * BLOCK - 1
_DIGIT: Final = re.compile("[0-9]")
_OTHER: Final = re.compile(r"[\W_]+")
_NO_LETTERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())


@dataclass(frozen=True, slots=True)
class _Text:
    blocks: frozenset[str]
    whole: str  # its beginning, for short values


@dataclass(slots=True)
class Passages(Generic[Name]):
    """Texts by name, to be looked for in others; of too many, the latest."""

    texts: dict[Name, _Text] = field(default_factory=dict)

    def add(self, name: Name, text: str) -> None:
        """Take in a text."""
        letters = squeeze(text)
        if len(letters) < _SHORTEST:
            return
        stride = max(BLOCK, -(-len(letters) // _MOST_BLOCKS))
        blocks = frozenset(letters[at : at + BLOCK] for at in range(0, len(letters) - BLOCK + 1, stride))
        self.texts[name] = _Text(blocks, letters[:_MOST_KEPT])
        while len(self.texts) > _MOST_TEXTS:
            del self.texts[next(iter(self.texts))]

    def update(self, other: "Passages[Name]") -> None:
        """Take in the texts of others; what is read once is not read again."""
        self.texts.update(other.texts)
        while len(self.texts) > _MOST_TEXTS:
            del self.texts[next(iter(self.texts))]

    def find(self, values: Iterable[str], names: Mapping[Name, object]) -> tuple[Name, ...]:
        """Return those of the named texts of which words stand in one of these values."""
        texts = [(name, text) for name, text in self.texts.items() if name in names]
        if not texts:
            return ()
        short: dict[str, None] = {}
        windows: set[str] = set()
        left = _MOST_LOOKED_AT
        for value in values:
            if left <= 0:
                break
            looked_at = value[:left]
            left -= len(value)
            letters = squeeze(looked_at)
            if len(letters) >= _PASSAGE:
                windows.update(letters[at : at + BLOCK] for at in range(len(letters) - BLOCK + 1))
            if len(short) < _MOST_VALUES:
                short.update(_short_values(letters, looked_at))
        return tuple(
            name
            for name, text in texts
            if not windows.isdisjoint(text.blocks) or any(letters in text.whole for letters in short)
        )


def squeeze(text: str) -> str:
    """Return the letters and digits of a text, as they look and in small letters."""
    plain = to_plain(text.encode("utf-8", "replace").decode())
    if plain.isascii():
        return plain.encode().translate(None, _NO_LETTERS).decode()
    return _OTHER.sub("", plain)


def _short_values(letters: str, value: str) -> dict[str, None]:
    """Return what of a value does not stand in a text by chance although it is short: all of it, or a number in it."""
    found = {letters: None} if _SHORTEST_WORDS <= len(letters) < _PASSAGE else {}
    words = (squeeze(word) for word in islice(value.split(), _MOST_VALUES))
    numbers = (letters, *words)
    found.update({word: None for word in numbers if _SHORTEST <= len(word) < _PASSAGE and _DIGIT.search(word)})
    return found
