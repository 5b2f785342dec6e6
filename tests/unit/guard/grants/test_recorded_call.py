"""Recorded calls: which conditions they violate, and what nobody can tell because a secret was taken out."""

import pytest

from batonpass.guard.grants.recorded_call import conditioned, find_broken, is_redacted
from batonpass.model.grants.scope_text import read_permit
from tests.unit.grants.world import World, may

PERMIT = read_permit('pay:x where amount <= 100, to is "ana"')


@pytest.mark.parametrize(
    ("value", "gone"),
    [
        pytest.param("x [redacted] y", True, id="a text with a secret in it"),
        pytest.param({"a": "x", "b": {"c": "[redacted]"}}, True, id="one value among others"),
        pytest.param({"a": "x", "[redacted]": "y"}, True, id="a name among others"),
        pytest.param(["x", "[redacted]"], True, id="one of a list"),
        pytest.param({"a": ["x", 1, None]}, False, id="nothing of it"),
        pytest.param(100, False, id="a number"),
    ],
)
def test_a_secret_anywhere_makes_a_value_unknown(value: object, *, gone: bool) -> None:
    """Wherever it was, what is left is not what the call was made with."""
    assert gone == is_redacted(value)


@pytest.mark.parametrize(
    ("judged", "broken"),
    [
        pytest.param({"amount": 100, "to": "ana"}, [], id="all are kept"),
        pytest.param({"amount": 101, "to": "ana"}, ["amount"], id="one is violated"),
        pytest.param({"to": "ana"}, ["amount"], id="one has no value"),
        pytest.param({"amount": "[redacted]", "to": "ben"}, ["to"], id="one is not guessed"),
    ],
)
def test_conditions_that_are_violated_are_named(judged: dict[str, object], broken: list[str]) -> None:
    """A value that is missing violates its condition; one that was redacted is skipped."""
    assert broken == [condition.argument for condition in find_broken(PERMIT, judged)]


def test_the_arguments_of_all_conditions_are_known_once() -> None:
    """Of both rights, in order."""
    grants = [may('pay:x where to is "ana"', 'pay:y where amount <= 1, to is "ben"')]

    assert ("amount", "to") == conditioned(part.said for part in World().terms(grants))
