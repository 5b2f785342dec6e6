"""The time of receipts and decisions.

Everything that records or decides takes a `Clock`, so that a test can set the time. Stores have their own clock for
leases, commands may show the system's time, and durations are measured with a monotonic clock.
"""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time, in UTC."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""


class SystemClock:
    """The operating system's clock."""

    def now(self) -> datetime:
        """Return the current time, aware and in UTC."""
        return datetime.now(UTC)
