"""Texts and arguments as shapes that can be counted: words without names and numbers, lengths, classes, magnitudes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite, log2
from sys import float_info
from typing import Any, Final
from zlib import crc32

_WORD: Final = re.compile(r"[^\W\d_]{2,24}", re.UNICODE)
_QUOTED: Final = re.compile(r"`[^`]*`|\"[^\"]*\"")
_NAMING: Final = frozenset("/\\@=")  # paths, addresses and settings vary with the task
_LONGEST: Final = 20_000  # characters of a text that are looked at
_TELLING: Final = 500  # characters of an argument that tell its class
_MOST_WORDS: Final = 400
_DEEPEST: Final = 3
_PER_OCTAVE: Final = 2
_LAST_BIN: Final = float_info.max_exp * _PER_OCTAVE  # its upper end is more than a float can hold
_CLASSES: Final = (
    ("empty", re.compile(r"\s*")),
    ("digits", re.compile(r"[\d.,:+ -]+")),
    ("address", re.compile(r"(?:https?:|mailto:|\S+@)\S+")),
    ("path", re.compile(r"\S*[/\\]\S*")),
    ("word", re.compile(r"\w[\w.-]*")),
)


def words_in(text: bytes | str | None) -> tuple[str, ...]:
    """Return the words of a text, in lower case, each once, without quotations, paths and numbers."""
    if not text:
        return ()
    plain = text[:_LONGEST].decode(errors="replace") if isinstance(text, bytes) else text[:_LONGEST]
    # Word by word, not by one pattern: one for words with a slash in them is quadratic in a long word without any.
    telling = (part for part in _QUOTED.sub(" ", plain).lower().split() if _NAMING.isdisjoint(part))
    return tuple(dict.fromkeys(_WORD.findall(" ".join(telling))[:_MOST_WORDS]))


def slot(text: str, slots: int) -> int:
    """Return the place of a text among so many: the same in every process."""
    return crc32(text.encode()) % slots


def vector_of(words: Iterable[str], places: int) -> dict[int, int]:
    """Return the words of a text as a vector of fixed length: what each place adds up to, without zeros.

    Half of the words count as -1, so that words which share a place by chance cancel out instead of making any two long
    texts look alike.
    """
    found: dict[int, int] = {}
    for word in words:
        place, is_negative = divmod(slot(word, 2 * places), 2)
        found[place] = found.get(place, 0) + (-1 if is_negative else 1)
    return {place: count for place, count in found.items() if count}


def log_bin(value: float) -> int:
    """Return the bin of a magnitude: two for each doubling, so that sums of bins stay comparable over months."""
    return 0 if value < 1 else 1 + int(log2(value) * _PER_OCTAVE)


def bin_middle(number: int) -> float:
    """Return the value in the middle of a bin."""
    return 0.0 if number <= 0 else float(2 ** ((number - 0.5) / _PER_OCTAVE))


def shapes_in(arguments: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the shape of each argument, by its path: `path=word.5` for a word of up to 32 characters."""
    yield from _shapes("", arguments or {}, 0)


def _shapes(at: str, value: object, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping) and depth < _DEEPEST:
        for name, inner in value.items():
            yield from _shapes(f"{at}.{name}" if at else str(name)[:40], inner, depth + 1)
        return
    yield f"{at}={_shape(value)}"


def _shape(value: object) -> str:
    match value:
        case None | bool():
            return str(value).lower()
        case float() if not isfinite(value):
            return "number.odd"
        case int() | float():
            return f"{'-' if value < 0 else ''}number.{log_bin(abs(value))}"
        case str():
            kind = next((name for name, form in _CLASSES if form.fullmatch(value[:_TELLING])), "prose")
            return f"{kind}.{len(value).bit_length()}"
        case list():
            return f"list.{len(value).bit_length()}"
        case _:
            return "other"


def shape_in_words(shape: str) -> str:
    """Return the shape of an argument for people: a range of numbers, or a class of text and a range of lengths."""
    name, _, size = shape.rpartition(".")
    if not size.isdecimal():
        return shape
    number = int(size)
    if name.endswith("number"):
        sign = name.removesuffix("number")
        # The largest float often means "no limit", and whole numbers in JSON may be larger still.
        low = 0.0 if not number else 2 ** ((min(number, _LAST_BIN) - 1) / _PER_OCTAVE)
        if number >= _LAST_BIN:
            return f"{sign}{low:.2g} and beyond"
        return f"{sign}{low:.2g} to {sign}{2 ** (number / _PER_OCTAVE):.2g}"
    unit = "items" if name == "list" else "characters"
    return f"{name} of {2 ** (number - 1)} to {2**number - 1} {unit}" if number else f"{name} of no {unit}"
