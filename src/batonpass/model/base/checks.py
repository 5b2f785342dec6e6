"""Checks of single fields. Each returns its value, or raises `InvalidValueError` with the name of the field."""

import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import UnionType
from typing import Final, TypeVar, get_args

from batonpass.errors import InvalidValueError

Value = TypeVar("Value", bound=str)
Member = TypeVar("Member", bound=StrEnum)
Thing = TypeVar("Thing")

LONGEST_TEXT = 10 * 1024 * 1024

# Canonical JSON keeps integers exact only below 2^53; a larger one would be read differently elsewhere.
LARGEST_INTEGER = 2**53 - 1

_is_digest = re.compile("[0-9a-f]{64}").fullmatch
_SHOWN = 80
_KNOWN_AT_MOST = 10_000
_LONGEST_KNOWN = 256


class Form:
    """A form that a text must have: a regular expression, and the same in words for the error message.

    It remembers the texts that matched. The same few ids and names are in every receipt of a run, and a look into a set
    costs a tenth of matching again. Texts that hardly ever come twice are not worth remembering (`once`).
    """

    __slots__ = ("known", "matches", "once", "pattern", "wanted")

    def __init__(self, pattern: str, wanted: str, *, once: bool = False) -> None:
        self.pattern = re.compile(pattern)
        self.matches = self.pattern.fullmatch
        self.wanted = wanted
        self.once = once
        self.known: set[str] = set()

    def require(self, field: str, value: Value) -> Value:
        """Return value if all of it matches. Raises `InvalidValueError`."""
        # Only `str` itself, no subclass: a subclass can define `__eq__` and `__hash__` so that it passes for a known
        # text.
        exact = type(value) is str
        if exact and value in self.known:
            return value
        if not isinstance(value, str) or self.matches(value) is None:
            raise InvalidValueError(field, f"{shorten(value)} is not {self.wanted}")
        if exact and not self.once and len(value) <= _LONGEST_KNOWN:
            if len(self.known) >= _KNOWN_AT_MOST:
                self.known.clear()
            self.known.add(value)
        return value


def shorten(value: object) -> str:
    """Return value as text for an error message: quoted, and at most 80 characters long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list within a list within a list
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


CODE: Final = Form(r"[a-z][a-z0-9_.-]{0,63}", "a code: lower-case letters, digits, '_', '.' or '-', at most 64")
MEDIA_TYPE: Final = Form(r"[a-z0-9][a-z0-9.+-]{0,63}/[a-z0-9][a-z0-9.+-]{0,63}", "a media type such as text/plain")


def require_digest(field: str, value: Value) -> Value:
    """Return value if it is 32 bytes in lower-case hexadecimal."""
    if not isinstance(value, str) or _is_digest(value) is None:
        raise InvalidValueError(field, f"{shorten(value)} is not 64 lower-case hexadecimal digits")
    return value


def require_code(field: str, value: Value) -> Value:
    """Return value if it is a short lower-case name that a program chose."""
    # The set is asked here too, as in all checks of this kind: most values are known, and this saves a call.
    return value if type(value) is str and value in CODE.known else CODE.require(field, value)


def require_media_type(field: str, value: Value) -> Value:
    """Return value if it is a media type without parameters."""
    return value if type(value) is str and value in MEDIA_TYPE.known else MEDIA_TYPE.require(field, value)


def require_integer(field: str, value: int, *, least: int = 0) -> int:
    """Return value if it is a whole number from least to 2^53 - 1, which canonical JSON keeps exact."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_INTEGER:
        raise InvalidValueError(field, f"{shorten(value)} is not a whole number from {least} to 2^53-1")
    return value


def require_utc(field: str, value: datetime) -> datetime:
    """Return value if it is an aware time in UTC."""
    # Nearly every time was made by us, with the `UTC` object itself: one comparison is enough.
    if type(value) is datetime and value.tzinfo is UTC:
        return value
    if not isinstance(value, datetime) or value.utcoffset() != timedelta(0):
        raise InvalidValueError(field, f"{shorten(value)} is not a time in UTC")
    return value


def require_member(field: str, value: Member, members: type[Member]) -> Member:
    """Return value if it is a member of the enumeration."""
    if not isinstance(value, members):
        raise InvalidValueError(field, f"{shorten(value)} is not one of {', '.join(members)}")
    return value


def as_member(field: str, value: Member | str, members: type[Member]) -> Member:
    """Return value if it is a member of the enumeration, or the member that it spells."""
    if isinstance(value, members):
        return value
    try:
        return members(value)
    except ValueError:
        raise InvalidValueError(field, f"{shorten(value)} is not one of {', '.join(members)}") from None


def require_instance(field: str, value: Thing, kind: type[Thing] | tuple[type, ...] | UnionType) -> Thing:
    """Return value if it is an instance of kind."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else get_args(kind) or (kind,)
        names = ", ".join(getattr(one, "__name__", str(one)) for one in kinds)
        raise InvalidValueError(field, f"{shorten(value)} is {'not' if len(kinds) == 1 else 'none of'} {names}")
    return value


def require_unique(field: str, values: Collection[str]) -> None:
    """Refuse a collection that contains the same value twice."""
    if len(set(values)) != len(values):
        raise InvalidValueError(field, "names one thing twice")


def require_codes(field: str, values: tuple[str, ...]) -> None:
    """Refuse anything but a tuple of different codes."""
    if type(values) is tuple and not values:
        return
    for value in require_instance(field, values, tuple):
        require_code(field, value)
    require_unique(field, values)


def require_text(field: str, value: str, *, empty: bool = False) -> str:
    """Return value if it is Unicode text that is not blank; with `empty`, blank text is allowed too."""
    if not isinstance(value, str):
        raise InvalidValueError(field, f"{shorten(value)} is not text")
    if not empty and (not value or value.isspace()):
        raise InvalidValueError(field, "is empty")
    if len(value) > LONGEST_TEXT:
        raise InvalidValueError(field, f"has {len(value):,} characters; attach it as an artifact instead")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(field, f"is not Unicode text: {error.reason} at character {error.start}") from None
    return value


def require_texts(field: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return values as a tuple if each is text that is not blank.

    A single `str` is refused: it is iterable, so a caller who forgot the list would get its characters.
    """
    if type(values) is tuple and not values:
        return values
    if isinstance(values, str):
        raise InvalidValueError(field, f"{shorten(values)} is one text; write a list of texts")
    return tuple([require_text(field, value) for value in values])
