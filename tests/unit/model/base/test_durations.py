"""Durations as people write them, and moments that are said by how long it is until then."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from batonpass.errors import InvalidValueError
from batonpass.model.base.durations import moment_after, moment_before, read_duration

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SAID = {
    "90s": timedelta(seconds=90),
    "10m": timedelta(minutes=10),
    "12h": timedelta(hours=12),
    "7d": timedelta(days=7),
    "2w": timedelta(weeks=2),
}


def test_a_duration_is_a_number_and_a_unit() -> None:
    """Seconds, minutes, hours, days and weeks."""
    assert SAID == {text: read_duration("deadline", text) for text in SAID}


def test_anything_else_is_refused_by_name() -> None:
    """The field is named, and what to write instead."""
    others: list[Any] = [
        "",
        "m",
        "10",
        "0m",
        "-1h",
        "1.5h",
        "10 m",
        "10m ",
        "1y",
        "9999999s",
        "10M",
        "\u0661m",
        10,
        None,
    ]
    for other in others:
        with pytest.raises(InvalidValueError, match=r"deadline.*write one like"):
            read_duration("deadline", other)


def test_a_moment_is_said_by_itself_or_by_how_long_it_is_until_then() -> None:
    """A moment stays as it is, and nothing stays nothing."""
    given = (None, NOW, timedelta(minutes=10), "10m")

    assert [None, NOW, NOW + timedelta(minutes=10), NOW + timedelta(minutes=10)] == [
        moment_after("deadline", each, NOW) for each in given
    ]


@pytest.mark.parametrize("given", [timedelta(0), timedelta(seconds=-1), timedelta.max], ids=["now", "before", "never"])
def test_no_moment_is_over_or_beyond_the_calendar(given: timedelta) -> None:
    """Who says that something ends before it begins is told so."""
    with pytest.raises(InvalidValueError, match="deadline"):
        moment_after("deadline", given, NOW)


def test_a_moment_that_is_past_is_said_by_its_age_or_its_date() -> None:
    """A date without a zone is one of the zone that is asked for; with one, it is what it says."""
    now, east = datetime(2026, 11, 18, 12, tzinfo=UTC), timezone(timedelta(hours=2))

    assert [
        datetime(2026, 11, 16, 12, tzinfo=UTC),
        datetime(2026, 11, 15, tzinfo=UTC),
        datetime(2026, 11, 14, 22, tzinfo=UTC),
        datetime(2026, 11, 15, 6, tzinfo=UTC),
    ] == [
        moment_before("since", "2d", now, UTC),
        moment_before("since", "2026-11-15", now, UTC),
        moment_before("since", "2026-11-15", now, east),
        moment_before("since", "2026-11-15T08:00+02:00", now, UTC),
    ]


@pytest.mark.parametrize("given", ["soon", "2y", "999999w", ""])
def test_no_other_words_are_a_moment(given: str) -> None:
    """The error names the field, and what can be written."""
    with pytest.raises(InvalidValueError, match=r"since: .* is neither an age such as 30m"):
        moment_before("since", given, datetime(2026, 11, 18, tzinfo=UTC))
