"""A clock that a test moves."""

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class FrozenClock:
    """Stands still until somebody moves it."""

    def __init__(self, at: datetime = NOON) -> None:
        self._at = at

    def now(self) -> datetime:
        """Return the moment at which it stands."""
        return self._at

    def tick(self, by: timedelta = timedelta(seconds=1)) -> datetime:
        """Move on, or back, and return the new moment."""
        self._at += by
        return self._at
