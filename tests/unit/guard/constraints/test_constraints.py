"""Typed constraints are held against calls and results, and fail closed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.guard.constraints.constraints import (
    find_broken_by_call,
    find_broken_by_result,
    find_checks_of_call,
    find_checks_of_result,
)
from batonpass.model.baton.items import Constraint
from tests.unit.guard.strategies import json_values, typed

DEEP: object = {}
for _ in range(5000):
    DEEP = {"a": DEEP}


def bound(binds_to: str | None, operator: str = "<=", value: str = "3") -> Constraint:
    return Constraint(key="threshold", operator=operator, value=value, binds_to=binds_to)


def found_by_call(constraint: Constraint, arguments: dict[str, Any], tool: str = "find") -> list[str]:
    return [broken.found for broken in find_broken_by_call([constraint], tool, arguments)]


@pytest.mark.parametrize(
    ("constraint", "arguments", "found"),
    [
        pytest.param(bound("call:find.threshold"), {"threshold": 3}, [], id="an argument that keeps to it"),
        pytest.param(bound("call:find.threshold"), {"threshold": 4}, ["'threshold' is 4"], id="one that does not"),
        pytest.param(bound("call:*.threshold"), {"threshold": 4}, ["'threshold' is 4"], id="bound for every tool"),
        pytest.param(bound("call:*.threshold"), {}, [], id="not every tool has the argument"),
        pytest.param(bound("call:other.threshold"), {"threshold": 4}, [], id="bound to another tool"),
        pytest.param(bound("call:finder.threshold"), {"threshold": 4}, [], id="bound to a tool that begins alike"),
        pytest.param(bound("result:threshold"), {"threshold": 4}, [], id="bound to the result"),
        pytest.param(bound(None), {"threshold": 4}, [], id="bound to nothing"),
        pytest.param(Constraint("be careful", binds_to="call:find.threshold"), {"threshold": 4}, [], id="prose"),
        pytest.param(bound("call:find.threshold"), {}, ["'threshold' is not given"], id="the default is not known"),
        pytest.param(bound("call:find.cc", "!=", "eve"), {}, [], id="without a value nothing forbidden is given"),
        pytest.param(bound("call:find.cc", "not in", "eve"), {"cc": ["bob", "eve"]}, ["'cc' is a list of 2"], id="cc"),
        pytest.param(bound("call:find.o.t"), {"o": {"t": 4}}, ["'o.t' is 4"], id="inside an object"),
        pytest.param(bound("call:find.o.t"), {"o": 4}, ["'o.t' is not given"], id="inside what is no object"),
        pytest.param(bound("call:find.threshold"), {"threshold": None}, ["'threshold' is None"], id="null"),
        pytest.param(bound("call:find.threshold"), {"threshold": True}, ["'threshold' is True"], id="true"),
        pytest.param(bound("call:find.threshold"), {"threshold": float("nan")}, ["'threshold' is nan"], id="NaN"),
        pytest.param(bound("call:find.threshold"), {"threshold": {}}, ["'threshold' is an object"], id="an object"),
        pytest.param(bound("call:find.threshold"), {"threshold": b"1"}, ["'threshold' is of type bytes"], id="bytes"),
        pytest.param(
            bound("call:find.threshold"),
            {"threshold": 1 << 10_000_000},
            ["'threshold' is a number of 10,000,001 bits"],
            id="a number that nobody can write out",
        ),
        pytest.param(bound("call:find.a"), {"a": DEEP}, ["'a' is an object"], id="an object nested 5000 times"),
    ],
)
def test_a_call_is_held_against_a_constraint(
    constraint: Constraint, arguments: dict[str, Any], found: list[str]
) -> None:
    """What breaks it, cannot be compared, or is left out is found."""
    assert found == found_by_call(constraint, arguments)


def test_a_tool_may_have_dots_in_its_name() -> None:
    """Where the tool ends is known by the tool that is called."""
    constraint = bound("call:mcp.find.threshold")

    assert ["'threshold' is 4"] == found_by_call(constraint, {"threshold": 4}, tool="mcp.find")
    assert [] == found_by_call(constraint, {"threshold": 3}, tool="mcp.find")
    assert [] == found_by_call(constraint, {"threshold": 4}, tool="find")


def test_what_is_found_is_short() -> None:
    """An argument of a megabyte does not fill the error."""
    (found,) = found_by_call(bound("call:find.a", "=", "b"), {"a": "x" * 1_000_000})

    assert len(found) < 100


@pytest.mark.parametrize(
    ("binds_to", "value", "found"),
    [
        pytest.param("result:total", {"total": 3}, [], id="a field that keeps to it"),
        pytest.param("result:total", {"total": "3.01"}, ["'total' is '3.01'"], id="a field that does not"),
        pytest.param("result:sum.total", {"sum": {"total": 2}}, [], id="a field inside an object"),
        pytest.param("result:sum.total", {"sum": {}}, ["'sum.total' is not given"], id="a missing field"),
        pytest.param("result:total", "3", ["'total' is not given"], id="a result without fields"),
        pytest.param("result:total", None, ["'total' is not given"], id="no result"),
        pytest.param("call:find.total", {"total": 4}, [], id="bound to a call"),
    ],
)
def test_a_result_is_held_against_a_constraint(binds_to: str, value: object, found: list[str]) -> None:
    """A field that breaks it or is missing is found."""
    assert found == [broken.found for broken in find_broken_by_result([bound(binds_to)], value)]


def test_a_missing_field_breaks_even_a_refusal() -> None:
    """A result must have the fields that it is judged by."""
    constraint = bound("result:status", "!=", "failed")

    assert [(constraint, "'status' is not given")] == [
        (broken.constraint, broken.found) for broken in find_broken_by_result([constraint], {})
    ]


def test_what_holds_was_checked_as_well() -> None:
    """Each check says what was found, whether it holds or not; what binds elsewhere was not checked."""
    limits = [bound("call:find.threshold"), bound("call:*.threshold", "<", "2"), bound("result:threshold")]

    assert [(limits[0], "'threshold' is 2", True), (limits[1], "'threshold' is 2", False)] == [
        (check.constraint, check.found, check.holds) for check in find_checks_of_call(limits, "find", {"threshold": 2})
    ]
    assert [(limits[2], "'threshold' is 3", True)] == [
        (check.constraint, check.found, check.holds) for check in find_checks_of_result(limits, {"threshold": 3})
    ]


@given(st.lists(typed, max_size=4), st.dictionaries(st.sampled_from(["a", "b"]), json_values), json_values)
def test_holding_against_constraints_never_raises(
    constraints: list[Constraint],
    arguments: dict[str, object],
    value: object,
) -> None:
    """Whatever stands in JSON, each broken constraint is one of those given, and says what was found."""
    broken = [*find_broken_by_call(constraints, "t", arguments), *find_broken_by_result(constraints, value)]

    assert all(one.constraint in constraints and len(one.found) < 200 for one in broken)
