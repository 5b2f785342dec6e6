"""Times, sizes and counts as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from batonpass.cli.output.units import counted, elapsed, minute, moment, size
from batonpass.records.json_shapes import exact

NOON = datetime(2026, 1, 2, 12, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [
        pytest.param("4ms", 0.0042, id="milliseconds"),
        pytest.param("1.5s", 1.5, id="seconds"),
        pytest.param("3m12s", 192, id="minutes"),
        pytest.param("2h05m", 7500, id="hours"),
        pytest.param("3d04h", 3 * 86_400 + 4 * 3600, id="days"),
    ],
)
def test_durations(expected: str, seconds: float) -> None:
    """A duration has the two figures that matter."""
    assert expected == elapsed(timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("expected", "count"),
    [
        pytest.param("0 bytes", 0, id="nothing"),
        pytest.param("1 byte", 1, id="one"),
        pytest.param("1.5 KiB", 1536, id="some"),
        pytest.param("2.0 GiB", 2 << 30, id="many"),
        pytest.param("4,096.0 TiB", 4 << 50, id="more than there are words for"),
    ],
)
def test_sizes(expected: str, count: int) -> None:
    """A size has a unit that a person can imagine."""
    assert expected == size(count)


def test_counts_agree_with_their_nouns() -> None:
    """One is one, and others are several."""
    assert ["1 run", "1,200 runs", "0 children"] == [
        counted(1, "run"),
        counted(1200, "run"),
        counted(0, "child", plural="children"),
    ]


def test_programs_get_utc_to_the_microsecond() -> None:
    """A time for a program is exact, and says that it is UTC."""
    assert ["2026-01-02T12:03:04.000005Z", None] == [exact(NOON), exact(None)]


def test_people_get_their_own_time() -> None:
    """A time for a person is in the zone of the machine that prints it."""
    local = NOON.astimezone()
    elsewhere = NOON.astimezone(timezone(timedelta(hours=9)))

    assert (f"{local:%Y-%m-%d %H:%M:%S}", f"{local:%Y-%m-%d %H:%M}") == (moment(elsewhere), minute(elsewhere))
