"""What a field may hold: each check returns its value or raises `InvalidValueError` with the field's name."""

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from types import UnionType
from typing import TypeVar

from batonpass.errors import InvalidValueError

Value = TypeVar("Value", bound=str)
Member = TypeVar("Member", bound=StrEnum)
Thing = TypeVar("Thing")

LONGEST_TEXT = 10 * 1024 * 1024

# Canonical JSON keeps integers exact only below 2^53; a larger one would be read differently elsewhere.
LARGEST_INTEGER = 2**53 - 1

_DIGEST_LENGTH = 64
_HEXADECIMAL = "0123456789abcdef"
_CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,63}/[a-z0-9][a-z0-9.+-]{0,63}")
_SHOWN = 80
_MATCHED: dict[str, re.Pattern[str]] = {}
_MATCHED_AT_MOST = 50_000


def shorten(value: object) -> str:
    """Return value as it can stand in a message: quoted, and never longer than a line."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, a list within a list within a list
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def require_match(field: str, value: Value, pattern: re.Pattern[str], wanted: str) -> Value:
    """Return value if all of it matches pattern."""
    # The same few ids stand in every receipt of a run: that one was good before costs a tenth of looking again.
    if isinstance(value, str) and _MATCHED.get(value) is pattern:
        return value
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise InvalidValueError(field, f"{shorten(value)} is not {wanted}")
    if len(_MATCHED) > _MATCHED_AT_MOST:
        _MATCHED.clear()
    _MATCHED[value] = pattern
    return value


def require_digest(field: str, value: Value) -> Value:
    """Return value if it is 32 bytes in lower-case hexadecimal."""
    # Stripping is a third of the cost of a regular expression, and every receipt holds half a dozen digests.
    if not isinstance(value, str) or len(value) != _DIGEST_LENGTH or value.strip(_HEXADECIMAL):
        raise InvalidValueError(field, f"{shorten(value)} is not 64 lower-case hexadecimal digits")
    return value


def require_digests(**given: str | None) -> None:
    """Refuse what is given and is no digest, naming its field."""
    for field, digest in given.items():
        if digest is not None:
            require_digest(field, digest)


def require_code(field: str, value: Value) -> Value:
    """Return value if it is a short lower-case name that a program chose."""
    return require_match(field, value, _CODE, "a code: lower-case letters, digits, '_', '.' or '-', at most 64")


def require_media_type(field: str, value: Value) -> Value:
    """Return value if it is a media type without parameters."""
    return require_match(field, value, _MEDIA_TYPE, "a media type such as text/plain")


def require_integer(field: str, value: int, *, least: int = 0) -> int:
    """Return value if it is a whole number from least to what canonical JSON keeps exact."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_INTEGER:
        raise InvalidValueError(field, f"{shorten(value)} is not a whole number from {least} to 2^53-1")
    return value


def require_utc(field: str, value: datetime) -> datetime:
    """Return value if it is an aware moment in UTC."""
    if not isinstance(value, datetime) or value.utcoffset() != timedelta(0):
        raise InvalidValueError(field, f"{shorten(value)} is not a time in UTC")
    return value


def require_member(field: str, value: Member, members: type[Member]) -> Member:
    """Return value if it is a member of the enumeration."""
    if not isinstance(value, members):
        raise InvalidValueError(field, f"{shorten(value)} is not one of {', '.join(members)}")
    return value


def as_member(field: str, value: Member | str, members: type[Member]) -> Member:
    """Return the member that a value is or spells."""
    try:
        return members(value)
    except ValueError:
        raise InvalidValueError(field, f"{shorten(value)} is not one of {', '.join(members)}") from None


def require_instance(field: str, value: Thing, kind: type[Thing] | tuple[type, ...] | UnionType) -> Thing:
    """Return value if it is of a kind."""
    if not isinstance(value, kind):
        raise InvalidValueError(field, f"{shorten(value)} is not {getattr(kind, '__name__', 'one of its kinds')}")
    return value


def require_unique(field: str, values: Collection[str]) -> None:
    """Refuse two equal values."""
    if len(set(values)) != len(values):
        raise InvalidValueError(field, "names one thing twice")


def require_codes(field: str, values: tuple[str, ...]) -> None:
    """Refuse what is not a tuple of different codes."""
    for value in require_instance(field, values, tuple):
        require_code(field, value)
    require_unique(field, values)


def require_text(field: str, value: str, *, empty: bool = False) -> str:
    """Return value if it is Unicode text with something in it."""
    if not isinstance(value, str):
        raise InvalidValueError(field, f"{shorten(value)} is not text")
    if not empty and not value.strip():
        raise InvalidValueError(field, "is empty")
    if len(value) > LONGEST_TEXT:
        raise InvalidValueError(field, f"has {len(value):,} characters; attach it as an artifact instead")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(field, f"is not Unicode text: {error.reason} at character {error.start}") from None
    return value


def require_texts(field: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return values as a tuple if each is text with something in it; one text alone is a mistake, and is refused."""
    if isinstance(values, str):
        raise InvalidValueError(field, f"{shorten(values)} is one text; write a list of texts")
    return tuple(require_text(field, value) for value in values)
