"""A value fits a constraint exactly, or does not, or cannot be compared."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.guard.constraints.comparison import ORDERING, Fit, choices_of, compare, is_refusing, read_text
from batonpass.model.baton.items import Operator
from tests.unit.guard.strategies import json_values, texts

SIX_IN_ATHENS = "2026-11-19T06:00+02:00"
HOLDS, FAILS, UNLIKE = Fit.HOLDS, Fit.FAILS, Fit.INCOMPARABLE
DEEP: object = []
for _ in range(5000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("operator", "wanted", "found", "fit"),
    [
        pytest.param("<=", "3", 3, HOLDS, id="an int at the limit"),
        pytest.param("<", "3", 3, FAILS, id="an int at an open limit"),
        pytest.param("<", "3", "2.9", HOLDS, id="a decimal string"),
        pytest.param(">=", "0.3", 0.3, HOLDS, id="a float is what it is written as"),
        pytest.param("=", "0.3", 0.1 + 0.2, FAILS, id="a float that is not quite"),
        pytest.param(">", "-1", Decimal("-0.5"), HOLDS, id="a decimal"),
        pytest.param("=", "1000", "1e3", HOLDS, id="one number in two spellings"),
        pytest.param("=", " 3 ", "3", HOLDS, id="space around a value"),
        pytest.param("!=", "3", "3.0", FAILS, id="the same number is not another"),
        pytest.param("!=", "3", "three", HOLDS, id="a word is another value than a number"),
        pytest.param("=", "3", "three", FAILS, id="a word is not a number"),
        pytest.param("<", "3", "three", UNLIKE, id="a word is not less than a number"),
        pytest.param("<", "three", 3, UNLIKE, id="a number is not less than a word"),
        pytest.param("<", "2026-02-01", "2026-01-31", HOLDS, id="dates are ordered as text"),
        pytest.param("<=", SIX_IN_ATHENS, "2026-11-19T05:30+02:00", HOLDS, id="a moment before another"),
        pytest.param("<=", SIX_IN_ATHENS, "2026-11-19T05:30+01:00", FAILS, id="later, although its text is less"),
        pytest.param("<=", SIX_IN_ATHENS, "2026-11-19T06:30+03:00", HOLDS, id="sooner, although its text is more"),
        pytest.param("=", SIX_IN_ATHENS, "2026-11-19T04:00:00.000Z", HOLDS, id="one moment in two spellings"),
        pytest.param("in", f"{SIX_IN_ATHENS}, later", "2026-11-19T04:00Z", HOLDS, id="one of the moments"),
        pytest.param("<=", SIX_IN_ATHENS, "2026-11-19T05:30", UNLIKE, id="without an offset nobody knows when"),
        pytest.param("<=", SIX_IN_ATHENS, "2026-11-19", UNLIKE, id="a day is no moment"),
        pytest.param("<=", SIX_IN_ATHENS, 6, UNLIKE, id="a number is no moment"),
        pytest.param("<=", SIX_IN_ATHENS, "2026-11-31T05:30Z", UNLIKE, id="a day that does not exist"),
        pytest.param("<=", SIX_IN_ATHENS, datetime(2026, 11, 19, 4, tzinfo=UTC), HOLDS, id="a moment of Python"),
        pytest.param("<=", SIX_IN_ATHENS, datetime(2026, 11, 19, 4), UNLIKE, id="a naive one"),  # noqa: DTZ001
        pytest.param("<", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", FAILS, id="the first and the last"),
        pytest.param("=", "eur", "eur", HOLDS, id="the same text"),
        pytest.param("=", "eur", "EUR", FAILS, id="another case is another text"),
        pytest.param("=", "a,b", "a,b", HOLDS, id="a comma in a single value"),
        pytest.param("in", "eur, usd", "usd", HOLDS, id="one of the choices"),
        pytest.param("in", "1, 2", 2.0, HOLDS, id="one of the numbers"),
        pytest.param("in", "eur, usd", "eur, usd", FAILS, id="all choices at once are none of them"),
        pytest.param("in", "a, b", ["a", "b", "a"], HOLDS, id="a list of choices"),
        pytest.param("in", "a, b", ["a", "c"], FAILS, id="a list with another"),
        pytest.param("in", "a, b", [["a"]], UNLIKE, id="a list in a list"),
        pytest.param("in", "a, b", [], HOLDS, id="an empty list has no other"),
        pytest.param("not in", "a, b", ["c", "a"], FAILS, id="a list with a forbidden one"),
        pytest.param("not in", "a, b", "c", HOLDS, id="not forbidden"),
        pytest.param("not in", "a, b", ["c", {}], UNLIKE, id="an object among others"),
        pytest.param("=", "a", ["a"], UNLIKE, id="a list is no value"),
        pytest.param("!=", "a", {}, UNLIKE, id="an object is no other value"),
        pytest.param("=", "true", True, HOLDS, id="true"),
        pytest.param("=", "True", True, HOLDS, id="true as Python writes it"),
        pytest.param("=", "1", True, FAILS, id="true is not one"),
        pytest.param("!=", "true", False, HOLDS, id="false is another value than true"),
        pytest.param("<=", "1", True, UNLIKE, id="true is not at most one"),
        pytest.param("=", "null", None, HOLDS, id="null"),
        pytest.param("!=", "3", None, HOLDS, id="null is another value"),
        pytest.param("<=", "3", None, UNLIKE, id="null is not at most three"),
        pytest.param("!=", "3", float("nan"), UNLIKE, id="NaN is not even another value"),
        pytest.param("!=", "3", Decimal("sNaN"), UNLIKE, id="a signalling NaN raises nothing"),
        pytest.param("!=", "3", "NaN", UNLIKE, id="NaN in text, where a number is wanted"),
        pytest.param("!=", "bob", "Nan", HOLDS, id="Nan is a name where names are wanted"),
        pytest.param(">", "3", float("inf"), UNLIKE, id="infinity is no number"),
        pytest.param(">", "3", "Infinity", UNLIKE, id="infinity in text"),
        pytest.param("=", "1000", "1_000", FAILS, id="underscores make a text"),
        pytest.param("=", "3", "٣", FAILS, id="digits of another script make a text"),
        pytest.param("<", "1e999999999", 3, HOLDS, id="a number with a huge exponent"),
        pytest.param(">", "3", "1e999999999", HOLDS, id="a huge number"),
        pytest.param("in", "1e999999999, 2", "10e999999998", HOLDS, id="one huge number in two spellings"),
        pytest.param("<", "3", "-1e-999999999", HOLDS, id="hardly less than nothing"),
        pytest.param(">", "3", "1e99999999999999999999", UNLIKE, id="an exponent beyond any decimal"),
        pytest.param(">", "3", "9" * 1_000_000, HOLDS, id="a million digits"),
        pytest.param(">", "3", 10**1000, HOLDS, id="an int of a thousand digits"),
        pytest.param(">", "3", 1 << 10_000_000, UNLIKE, id="an int that takes too long to convert"),
        pytest.param("=", "3", b"3", UNLIKE, id="bytes are no text"),
        pytest.param("in", "3", DEEP, UNLIKE, id="a list nested 5000 times"),
    ],
)
def test_a_value_is_compared(operator: str, wanted: str, found: object, fit: Fit) -> None:
    """Numbers as exact decimals, moments as moments, all other text as text, and what is no text not at all."""
    assert fit is compare(Operator(operator), wanted, found)


@given(st.sampled_from(Operator), texts, json_values)
def test_comparing_never_raises(operator: Operator, wanted: str, found: object) -> None:
    """Whatever stands in JSON has a fit."""
    assert compare(operator, wanted, found) in Fit


@given(st.decimals(allow_nan=False, allow_infinity=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_an_order_and_its_opposite_differ(wanted: Decimal, found: Decimal) -> None:
    """Of two opposite operators exactly one holds between numbers."""
    for one, other in (("<", ">="), (">", "<="), ("=", "!="), ("in", "not in")):
        fits = {compare(Operator(operator), str(wanted), str(found)) for operator in (one, other)}

        assert {HOLDS, FAILS} == fits


@given(st.datetimes(), st.datetimes(), st.integers(-23, 23), st.integers(-23, 23))
def test_moments_are_ordered_wherever_they_are_told(one: datetime, other: datetime, east: int, west: int) -> None:
    """An offset says where somebody looked at a clock; which of two moments was first does not depend on it."""
    here, there = (
        moment.replace(tzinfo=timezone(timedelta(hours=hours))) for moment, hours in ((one, east), (other, west))
    )

    assert (HOLDS if there <= here else FAILS) is compare(Operator.AT_MOST, here.isoformat(), str(there))


def test_numbers_are_read_as_they_are_written() -> None:
    """What is no plain decimal number stays text."""
    assert [Decimal("-1.50"), Decimal("1E+3"), Decimal("0.5"), "1.2.3", "", "0x10", "."] == [
        read_text(text) for text in (" -1.50", "1e3", ".5", "1.2.3", " ", "0x10", ".")
    ]


def test_operators_are_of_three_kinds() -> None:
    """Four order, two allow and two only refuse."""
    assert {"<", "<=", ">", ">="} == ORDERING
    assert {"!=", "not in"} == {operator for operator in Operator if is_refusing(operator)}


def test_choices_are_written_with_commas() -> None:
    """Space around a choice does not belong to it."""
    assert ("eur", "usd", "") == choices_of(" eur ,usd,")
