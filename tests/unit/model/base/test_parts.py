"""Parts of values by name, of ours and of other people's."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import NODEFAULT, Struct

from batonpass.model.base.value import defaults_of, parts_of
from batonpass.model.bodies.tool_bodies import Changed
from batonpass.model.grants.charge import Charge
from tests.unit.model.examples import CHARGED, DIGEST


@dataclass
class Order:
    """A dataclass of somebody else."""

    path: str
    lines: list[str] = field(default_factory=list)


class Parcel(Struct):
    """A struct of somebody else."""

    path: str
    weight: int = 1


class Claimant:
    """Says that it is a struct."""

    __class__ = Struct  # type: ignore[assignment]  # that is the lie


def without_path(value: Any) -> Any:  # noqa: ANN401 - either of the two
    """Return a value that lost a part."""
    del value.path
    return value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(CHARGED, {"account": CHARGED.account, "unit": "calls", "amount": 1}, id="one of ours"),
        pytest.param(Parcel("a"), {"path": "a", "weight": 1}, id="another struct"),
        pytest.param(Order("a"), {"path": "a", "lines": []}, id="a dataclass"),
        pytest.param(without_path(Parcel("a")), {"path": None, "weight": 1}, id="a struct that lost a part"),
        pytest.param(without_path(Order("a")), {"path": None, "lines": []}, id="a dataclass that lost a part"),
        pytest.param({"path": "a"}, None, id="a dict"),
        pytest.param(Parcel, None, id="a struct's class"),
        pytest.param(Order, None, id="a dataclass itself"),
        pytest.param(Claimant(), None, id="what only says that it is a struct"),
    ],
)
def test_values_with_named_parts_are_opened(value: object, expected: dict[str, object] | None) -> None:
    """Whoever looks for a path in arguments finds it in a struct as in a dataclass."""
    assert expected == parts_of(value)


def test_defaults_are_told_by_name() -> None:
    """Parts that have to be given have none."""
    assert {"change": NODEFAULT, "before": None, "after": None} == defaults_of(Changed)
    assert {NODEFAULT} == set(defaults_of(Charge).values())
    assert DIGEST not in defaults_of(Changed).values()
