"""Clocks: one that tells the time, and one that a test moves."""

from datetime import UTC, datetime, timedelta

from batonpass.clock import SystemClock
from batonpass.testing import FrozenClock
from batonpass.testing.clock import NOON


def test_a_frozen_clock_stands_still() -> None:
    """It says the same until somebody moves it, forwards or back."""
    clock = FrozenClock()
    told = [clock.now(), clock.now(), clock.tick(), clock.now(), clock.tick(timedelta(hours=-1))]

    assert [NOON, NOON, NOON + timedelta(seconds=1), NOON + timedelta(seconds=1), NOON - timedelta(seconds=3599)] == (
        told
    )


def test_the_systems_clock_is_in_utc() -> None:
    """The time comes with its zone, and is the present."""
    before = datetime.now(UTC)
    told = SystemClock().now()

    assert UTC is told.tzinfo
    assert before <= told <= datetime.now(UTC)
