"""A clock that a test moves."""

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class FrozenClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, at: datetime = NOON) -> None:
        self._at = at

    def now(self) -> datetime:
        """Return the current time of this clock."""
        return self._at

    def tick(self, by: timedelta = timedelta(seconds=1)) -> datetime:
        """Move the clock forward, or back, and return the new time."""
        self._at += by
        return self._at
