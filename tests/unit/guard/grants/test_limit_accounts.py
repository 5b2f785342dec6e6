"""How limits are counted: what may be used before a call, and what is left afterwards."""

from datetime import UTC, datetime, timedelta

import pytest

from batonpass.guard.grants.limit_accounts import find_left, least_left, most_of, most_with
from batonpass.model.base.ids import new_run_id
from batonpass.model.grants.charge import Charged, Unit, whole_of
from batonpass.model.grants.limits import Limits

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
ACCOUNT = whole_of(new_run_id(NOW))


def used(unit: Unit, amount: int) -> Charged:
    """Return what was used of a unit."""
    return Charged(account=ACCOUNT, unit=unit, used=amount)


@pytest.mark.parametrize(
    ("expected", "limits", "unit"),
    [
        pytest.param((None, None), Limits(), Unit.CALLS, id="no limit"),
        pytest.param((3, 3), Limits(calls=3), Unit.CALLS, id="calls are known before"),
        pytest.param((0, 0), Limits(calls=0), Unit.CALLS, id="no call at all"),
        pytest.param((10, 9), Limits(rows=10), Unit.ROWS, id="rows are known afterwards, so one must be left"),
        pytest.param((0, 0), Limits(rows=0), Unit.ROWS, id="nothing is not less than nothing"),
        pytest.param((2_500_000, 2_499_999), Limits(spend="2.5"), Unit.SPEND, id="money is counted in millionths"),
        pytest.param((None, None), Limits(calls=3), Unit.ROWS, id="another unit is limited"),
    ],
)
def test_a_limit_in_the_units_of_charges(expected: tuple[int | None, int | None], limits: Limits, unit: Unit) -> None:
    """The limit itself, and the highest total at which a call may still be made."""
    assert expected == (most_of(limits, unit), most_with(limits, unit))


def test_what_is_left_is_told_for_limited_units_only() -> None:
    """Used and left of each unit that has a limit; what was given back beyond nothing counts as nothing used."""
    limits = Limits(calls=3, spend="2.5", rows=10)
    charged = [used(Unit.CALLS, 4), used(Unit.SPEND, 1_250_000), used(Unit.ROWS, -2), used(Unit.TOKENS, 9)]
    told = [(one.unit, one.most, one.used, one.left) for one in find_left(limits, charged)]

    assert [("calls", 3, 4, 0), ("spend", "2.5", "1.25", "1.25"), ("rows", 10, 0, 10)] == told
    assert [] == list(find_left(Limits(), charged))


def test_time_is_told_if_somebody_says_since_when() -> None:
    """It passes by itself: from the beginning until now, and never below nothing."""
    limits = Limits(seconds=60)
    ends = [NOW + timedelta(seconds=20), NOW + timedelta(seconds=90), NOW - timedelta(seconds=5)]
    told = [[(one.used, one.left) for one in find_left(limits, [], since=NOW, at=at)] for at in ends]

    assert [[(20, 40)], [(90, 0)], [(0, 60)]] == told
    assert [] == [*find_left(limits, []), *find_left(limits, [], since=NOW), *find_left(limits, [], at=NOW)]


def test_the_limit_with_the_least_left_is_the_one_that_stops() -> None:
    """Of each unit one, in the order of units; of equal ones the first, which is the furthest up."""
    above = [*find_left(Limits(calls=5, rows=4), [used(Unit.CALLS, 1)], budget=True)]
    below = [*find_left(Limits(calls=9, rows=4), [used(Unit.CALLS, 8)])]
    least = [(one.unit, one.left, one.budget) for one in least_left([*above, *below])]

    assert [("calls", 1, False), ("rows", 4, True)] == least
