"""A system whose time is held."""

from datetime import UTC, datetime, timedelta

from batonpass.system import RealSystem

_BEGINNING = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class FrozenClock(RealSystem):
    """The system of this process, but its time stands still until a test moves it: `Relay.open(system=FrozenClock())`.

    What is made in the same microsecond has no order, so lists that show the latest first need `advance` in between.
    """

    def __init__(self, at: datetime = _BEGINNING) -> None:
        self.at = at

    def now(self) -> int:
        """Return microseconds since 1970, UTC."""
        return int(self.at.timestamp()) * 1_000_000 + self.at.microsecond

    def advance(self, by: timedelta | float) -> None:
        """Move the time on, by a duration or by seconds."""
        self.at += by if isinstance(by, timedelta) else timedelta(seconds=by)
