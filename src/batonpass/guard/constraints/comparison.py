"""Compares a value with a typed constraint: numbers as exact decimals, times as times, everything else as text."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum, auto
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from batonpass.model.baton.items import Operator

Reading: TypeAlias = Decimal | datetime | str


class Fit(Enum):
    """Whether a value meets a constraint. An incomparable value does not."""

    HOLDS = auto()
    FAILS = auto()
    INCOMPARABLE = auto()


# Decimal alone also accepts "1_000", digits of every script, "nan" and "infinity".
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Only with an offset: without one, nobody knows which time is meant, and it stays text.
_MOMENT: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)
_NOT_A_NUMBER: Final = re.compile(r"[+-]?(?:s?nan[0-9]*|inf|infinity)", re.IGNORECASE)

# As many digits as Python converts to text by default; a longer conversion would take too long for a guard.
_MOST_BITS: Final = 14_300

_SPELLED: Final[Mapping[bool | None, frozenset[str]]] = MappingProxyType(
    {
        True: frozenset({"true", "True", "TRUE"}),
        False: frozenset({"false", "False", "FALSE"}),
        None: frozenset({"null", "none", "None", "NULL"}),
    },
)
_ORDERS: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = MappingProxyType(
    {Operator.LESS: lt, Operator.AT_MOST: le, Operator.MORE: gt, Operator.AT_LEAST: ge},
)
_KINDS: Final = (Decimal, datetime, str)
_REFUSING: Final = frozenset({Operator.NOT_EQUAL, Operator.NONE_OF})

ORDERING: Final = frozenset(_ORDERS)


def is_refusing(operator: Operator) -> bool:
    """Return whether an operator only excludes values, so that a missing value meets it."""
    return operator in _REFUSING


def read_text(text: str) -> Reading:
    """Return the number or the time that a text spells, or else the text without surrounding blanks."""
    stripped = text.strip()
    try:
        if _NUMBER.fullmatch(stripped) is not None:
            return Decimal(stripped)
        if _MOMENT.fullmatch(stripped) is not None:
            return datetime.fromisoformat(stripped)
    except (InvalidOperation, ValueError):  # an exponent of more than eighteen digits; the 31st of June
        return stripped
    return stripped


def choices_of(value: str) -> tuple[str, ...]:
    """Return the values of a comma-separated list."""
    return tuple(choice.strip() for choice in value.split(","))


def compare(operator: Operator, wanted: str, found: object) -> Fit:
    """Return how a value fits the wanted one. Never raises."""
    if operator in _ORDERS:
        return _fit(_is_ordered(_ORDERS[operator], read_text(wanted), found))
    many = operator in {Operator.ONE_OF, Operator.NONE_OF}
    choices = frozenset(read_text(choice) for choice in (choices_of(wanted) if many else (wanted,)))
    # A list is among the choices if each element is; lists have no other order or equality.
    values = found if many and isinstance(found, list | tuple) else (found,)
    fit = Fit.HOLDS
    for value in values:
        among = _is_among(choices, value)
        if among is None:
            return Fit.INCOMPARABLE
        if among is is_refusing(operator):
            fit = Fit.FAILS
    return fit


def _fit(answer: bool | None) -> Fit:  # noqa: FBT001 - the answer is the whole input
    return Fit.INCOMPARABLE if answer is None else Fit.HOLDS if answer else Fit.FAILS


def _read(found: object) -> Reading | None:
    match found:
        case str():
            return read_text(found)
        case int():
            return Decimal(found) if found.bit_length() <= _MOST_BITS else None
        case float():
            return Decimal(str(found)) if math.isfinite(found) else None
        case Decimal():
            return found if found.is_finite() else None
        case datetime():
            return found if found.utcoffset() is not None else None
        case _:
            return None


def _is_among(choices: frozenset[Reading], found: object) -> bool | None:
    if found is None or isinstance(found, bool):
        return not _SPELLED[found].isdisjoint(choices)
    reading = _read(found)
    if isinstance(reading, str) and _NOT_A_NUMBER.fullmatch(reading):
        # The word is fine where words are wanted; where a number is wanted, it is the result of a failed computation.
        return None if any(isinstance(choice, Decimal) for choice in choices) else reading in choices
    return None if reading is None else reading in choices


def _is_ordered(order: Callable[[Any, Any], bool], wanted: Reading, found: object) -> bool | None:
    reading = None if isinstance(found, bool) else _read(found)
    if not any(isinstance(reading, kind) and isinstance(wanted, kind) for kind in _KINDS):
        return None
    return order(reading, wanted)
