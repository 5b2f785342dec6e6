"""Resources: the targets of calls, in one canonical spelling.

Two spellings of the same thing must be equal, and no spelling may look like something else. A resource is a sequence of
segments with `/` between them: a path in the work tree, or a name that a tool gives to its target. One that begins with
`/` is absolute: it is outside the work tree, and only patterns that begin with `/` match it. This module does not look
at a disk: a resolver follows links first.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import require_instance, shorten

LONGEST: Final = 1024
_MOST_SEGMENTS: Final = 64

# Some tools decode these before they act. Then the call would touch something else than was checked.
_ENCODED: Final = re.compile("%(?:[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})")
_MEANINGFUL: Final = "/\\.%:*~"
_REFUSED: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
# Fillers, joiners and selectors that are invisible, although Unicode counts them as letters or marks.
_UNSEEN: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))),
)


class Resource(Struct, frozen=True):
    """The target of a call. Without segments it is the work tree itself, or the root of the file system."""

    absolute: bool
    segments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{'/' if self.absolute else ''}{'/'.join(self.segments)}" or "."


def read_resource(field: str, text: str) -> Resource:
    """Return a resource in its canonical spelling: Unicode NFC, without `.` and empty segments.

    Raises `InvalidValueError` for anything ambiguous: `..`, backslashes, percent-encoding, wildcards, control and
    invisible characters, characters that become one of these by folding, segments that begin or end with a space or end
    with a dot, and a leading `~`.
    """
    return _read(field, text if type(text) is str else require_instance(field, text, str))


@lru_cache(maxsize=4096)
def _read(field: str, text: str) -> Resource:
    segments = _split(field, text)
    for segment in segments:
        if "*" in segment:
            raise InvalidValueError(field, f"{shorten(text)} has a wildcard; name one thing")
    return Resource(text.startswith("/"), segments)


def _split(field: str, text: str) -> tuple[str, ...]:
    if len(text) > LONGEST:
        raise InvalidValueError(field, f"has {len(text):,} characters; at most {LONGEST:,} are read")
    plain = text if text.isascii() and text.isprintable() else _composed(field, require_readable(field, text))
    if "\\" in plain:
        raise InvalidValueError(field, f"{shorten(text)} has a backslash; write / between segments")
    if _ENCODED.search(plain):
        raise InvalidValueError(field, f"{shorten(text)} is percent-encoded; write the characters themselves")
    if plain.startswith("~"):
        raise InvalidValueError(field, f"{shorten(text)} begins with ~, which some tools expand; write where it leads")
    segments = tuple(filter(None, plain.split("/")))
    if "." in segments:
        segments = tuple([segment for segment in segments if segment != "."])
    if len(segments) > _MOST_SEGMENTS:
        raise InvalidValueError(field, f"has {len(segments):,} segments; at most {_MOST_SEGMENTS} are read")
    for segment in segments:
        if segment == "..":
            raise InvalidValueError(field, f"{shorten(text)} has '..'; write where it leads")
        if segment[-1] in " ." or segment[0] == " ":
            raise InvalidValueError(
                field,
                f"{shorten(text)} has a segment with a space at an end or a dot behind it, which some systems drop",
            )
    return segments


def read_segments(field: str, text: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether a pattern is absolute, and its segments with their wildcards. Raises `InvalidValueError`."""
    segments = _split(field, text)
    for segment in segments:
        _require_one_script(field, segment)
    return text.startswith("/"), segments


def require_readable(field: str, text: str) -> str:
    """Return text if a reader sees every character of it, in the order of the text. Raises `InvalidValueError`."""
    if text.isascii():
        if text.isprintable():
            return text
    elif not any(
        (unicodedata.category(character) in _REFUSED and character != " ") or character in _UNSEEN for character in text
    ):
        return text
    raise InvalidValueError(field, f"{shorten(text)} has a character that cannot be seen, or that moves others")


def _composed(field: str, text: str) -> str:
    """Return text in Unicode NFC. Raises `InvalidValueError` if a character could be read as another one."""
    composed = unicodedata.normalize("NFC", text)
    folded = unicodedata.normalize("NFKC", composed)
    if any(folded.count(character) > composed.count(character) for character in _MEANINGFUL):
        raise InvalidValueError(field, f"{shorten(text)} has a character that others read as one of {_MEANINGFUL}")
    return composed


# Scripts with letters that look like Latin ones. In a call, such a name is just another name, and no exact pattern
# matches it. In a pattern it would mislead the person who reads and grants it.
_LOOKALIKE: Final = frozenset({"ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK", "LISU"})


def _require_one_script(field: str, segment: str) -> None:
    if segment.isascii():
        return
    scripts = {unicodedata.name(character, "").partition(" ")[0] for character in segment if character.isalpha()}
    if "LATIN" in scripts and scripts & _LOOKALIKE:
        raise InvalidValueError(field, f"{shorten(segment)} mixes Latin letters with others that look like them")
