"""How we write times, sizes and counts for people. Programs get the exact values from `--json`."""

from datetime import datetime, timedelta
from typing import Final

_KIB: Final = 1024
_MINUTE: Final = 60
_HOUR: Final = 60
_DAY: Final = 24


def moment(at: datetime) -> str:
    """Return a time in the local time zone, to the second."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def minute(at: datetime) -> str:
    """Return a time in the local time zone, to the minute."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")


def elapsed(duration: timedelta) -> str:
    """Return a duration in one or two units."""
    seconds = duration.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < _MINUTE:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), _MINUTE)
    if minutes < _HOUR:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(minutes, _HOUR)
    if hours < _DAY:
        return f"{hours}h{minutes:02}m"
    return f"{hours // _DAY}d{hours % _DAY:02}h"


def size(count: int) -> str:
    """Return a number of bytes in a readable unit."""
    amount, units = float(count), iter(("bytes", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while amount >= _KIB and (larger := next(units, None)) is not None:
        amount, unit = amount / _KIB, larger
    if unit == "bytes":
        return counted(count, "byte")
    return f"{amount:,.1f} {unit}"


def counted(count: int, noun: str, *, plural: str | None = None) -> str:
    """Return a count with its noun: 1 run, 2 runs."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
