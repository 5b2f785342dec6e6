"""Conditions: which values keep to them, by type and not by what they look like."""

from decimal import Decimal

import pytest

from batonpass.errors import InvalidValueError
from batonpass.model.base.decimals import as_decimal
from batonpass.model.grants.condition import Between, Condition, Like, OneOf, Under, holds, like
from batonpass.model.grants.limits import UNLIMITED, Limits

ONE = OneOf("p", (1, "x", None))
SOME = Between("p", "-1", "100")


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        pytest.param(ONE, 1, id="the number"),
        pytest.param(ONE, 1.0, id="the number with a fraction of nothing"),
        pytest.param(ONE, Decimal("1.00"), id="the number as a decimal"),
        pytest.param(ONE, None, id="null where null is meant"),
        pytest.param(ONE, [1, "x"], id="a list of such"),
        pytest.param(SOME, 100, id="the bound itself"),
        pytest.param(SOME, 0.1, id="a tenth"),
        pytest.param(SOME, "99.5", id="a decimal as text"),
        pytest.param(SOME, -1, id="below nothing"),
        pytest.param(Under("p", "src"), "src", id="the place itself"),
        pytest.param(Under("p", "src"), ["src/a", "./src//b/"], id="paths below"),
        pytest.param(Under("p", "."), "src/a", id="anywhere in the work tree"),
        pytest.param(Under("p", "/"), "/etc", id="anywhere outside"),
        pytest.param(like("p", "*@example.org"), "a@example.org", id="an end"),
        pytest.param(like("p", r"a\*b*"), "a*bc", id="a star that is a star"),
        pytest.param(Like("p", ("", "", "")), "", id="any text"),
    ],
)
def test_values_that_keep_to_a_condition(condition: Condition, value: object) -> None:
    """A value of the right type, or a list of such values, is taken."""
    assert holds(condition, {"p": value})


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        pytest.param(ONE, True, id="true is not 1"),
        pytest.param(ONE, "1", id="text is not 1"),
        pytest.param(ONE, "X", id="upper case"),
        pytest.param(ONE, False, id="false is not null"),
        pytest.param(ONE, [], id="an empty list"),
        pytest.param(ONE, [1, 2], id="a list with another"),
        pytest.param(ONE, [[1]], id="a list in a list"),
        pytest.param(ONE, {"x": 1}, id="an object"),
        pytest.param(SOME, 100.0000001, id="just above"),
        pytest.param(SOME, float("nan"), id="not a number"),
        pytest.param(SOME, float("-inf"), id="infinity"),
        pytest.param(SOME, Decimal("NaN"), id="a decimal that is no number"),
        pytest.param(SOME, 1 << 5000, id="more digits than anybody reads"),
        pytest.param(SOME, True, id="true is no number"),
        pytest.param(SOME, "1e1", id="an exponent as text"),
        pytest.param(SOME, "٣", id="a digit of another script"),
        pytest.param(SOME, " 5", id="a space before a number"),
        pytest.param(SOME, "1_0", id="an underscore within"),
        pytest.param(Under("p", "src"), "src/../x", id="up and out"),
        pytest.param(Under("p", "src"), "srcs", id="a longer name"),
        pytest.param(Under("p", "."), "/etc", id="outside"),
        pytest.param(Under("p", "src"), 7, id="a number for a path"),
        pytest.param(Under("p", "src"), ["src/a", "x"], id="a list that leads out"),
        pytest.param(like("p", "a*a"), "a", id="an overlap of both ends"),
        pytest.param(like("p", "a*b*c"), "acb", id="another order"),
        pytest.param(like("p", "a*"), 7, id="a number for text"),
    ],
)
def test_values_that_break_a_condition(condition: Condition, value: object) -> None:
    """Whatever is not plainly taken is not taken."""
    assert not holds(condition, {"p": value})


def test_an_argument_that_is_not_there_breaks_every_condition() -> None:
    """Whoever leaves an argument out gets the tool's default, and nobody can see whether that keeps to it."""
    for condition in (ONE, SOME, Under("p.q", "."), Like("p", ("", ""))):
        assert not holds(condition, {"other": 1})
    assert not holds(Under("p.q", "."), {"p.q": "a"})
    assert holds(Under("p.q", "."), {"p": {"q": "a"}})


@pytest.mark.parametrize(
    "wrong", ["", "1e3", "NaN", "+1", "01", ".5", "1.", "1 ", "9" * 19, "0." + "1" * 19, 1.5, True]
)
def test_what_is_no_decimal(wrong: object) -> None:
    """A decimal has one plain spelling, and a size."""
    with pytest.raises(InvalidValueError):
        as_decimal("most", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "spelled"),
    [("100", "100"), ("1.50", "1.5"), ("1.00", "1"), ("-0.0", "0"), (7, "7"), (Decimal("1E+2"), "100"), ("0", "0")],
)
def test_a_decimal_has_one_spelling(given: str | int | Decimal, spelled: str) -> None:
    """No zero stands where it could be left out."""
    assert spelled == as_decimal("most", given)


def test_limits_meet() -> None:
    """The lesser of both holds, and money is compared as money."""
    one, other = Limits(calls=5, spend="10"), Limits(spend="9.5", rows=3)

    assert Limits(calls=5, spend="9.5", rows=3) == one.meet(other) == other.meet(one)
    assert one == one.meet(UNLIMITED) == UNLIMITED.meet(one)
    assert ["calls"] == list(one.find_excess(other))
