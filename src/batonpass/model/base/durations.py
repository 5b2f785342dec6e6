"""Durations as people write them, such as "30m", and moments that are given as a duration from now."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from batonpass.errors import InvalidValueError

_FORM: Final = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def read_duration(field: str, text: str) -> timedelta:
    """Return a duration such as "30m". Raises `InvalidValueError` for any other text, and for zero."""
    found = _FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None or int(found[1]) == 0:
        raise InvalidValueError(field, f'{text!r} is no duration; write one like "30m", "12h" or "7d"'[:200])
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def as_duration(field: str, given: timedelta | str) -> timedelta:
    """Return a duration that is given as such, or as a text like "30s". Raises `InvalidValueError`."""
    return given if isinstance(given, timedelta) else read_duration(field, given)


def moment_before(field: str, given: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return a moment in UTC from an age such as "2d", a date, or a date with a time. Raises `InvalidValueError`.

    A date that names no zone is one of `zone`, by default that of this machine.
    """
    try:
        if age := _FORM.fullmatch(given):
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        at = datetime.fromisoformat(given)
        return (at.replace(tzinfo=zone) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        problem = f"{given[:100]!r} is neither an age such as 30m, 12h, 2d or 1w nor a date such as 2026-11-15"
        raise InvalidValueError(field, problem) from None


def moment_after(field: str, given: datetime | timedelta | str | None, now: datetime) -> datetime | None:
    """Return a given moment as it is, or now plus a given duration. Raises `InvalidValueError`."""
    if given is None or isinstance(given, datetime):
        return given
    duration = as_duration(field, given)
    if duration <= timedelta(0):
        raise InvalidValueError(field, "is over already; say a moment that is still to come")
    try:
        return now + duration
    except OverflowError:
        raise InvalidValueError(field, "is later than any calendar goes") from None
