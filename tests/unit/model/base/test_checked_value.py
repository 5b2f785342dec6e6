"""Values are checked as the types of their fields say."""

from collections.abc import Iterator
from types import NoneType
from typing import Any, Final, get_args

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields

from batonpass.errors import InvalidValueError
from batonpass.model.base.checked_value import CheckedValue, Code, Ordinal, checks_of
from batonpass.model.base.ids import RunId
from batonpass.model.base.label import Source
from batonpass.model.bodies.body import Body, UnknownBody
from batonpass.model.grants.charge import Charges

BODIES: Final = [kind for kind in get_args(Body) if issubclass(kind, CheckedValue)]


class Lists(CheckedValue, frozen=True, kw_only=True):
    """A value with a list of each sort."""

    codes: tuple[Code, ...] = ()
    runs: tuple[RunId, ...] = ()
    sources: tuple[Source, ...] = ()
    charges: Charges = ()
    times: Ordinal = 1


class Agreeable:
    """Says that it equals whatever it is compared with, and that it is empty."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(())

    def __bool__(self) -> bool:
        return False


def of_fields() -> Iterator[tuple[str, Any, Any]]:
    """Yield each field of each body: its name, its default and its check."""
    for kind in BODIES:
        for field, default, check in checks_of(kind):
            yield f"{kind.__name__}.{field}", default, check


def test_every_field_of_every_body_has_a_check() -> None:
    """A type that nothing says how to check would have raised here."""
    assert {UnknownBody} == {*get_args(Body)} - {*BODIES}
    assert len(BODIES) < sum(1 for _ in of_fields())


def test_a_default_would_pass_its_check() -> None:
    """A default is spared the check, so it must be one that passes."""
    refused = []
    for field, default, check in of_fields():
        if default is not NODEFAULT and default is not None:
            try:
                check("default", default)
            except InvalidValueError:
                refused.append(field)

    assert [] == refused


def test_what_may_be_none_is_none_unless_given() -> None:
    """None is spared the check only as a default."""
    wrong = [
        f"{kind.__name__}.{one.name}"
        for kind in BODIES
        for one in fields(kind)
        if NoneType in get_args(one.type) and one.default is not None
    ]

    assert [] == wrong


def test_a_type_that_nothing_says_how_to_check_is_refused() -> None:
    """A new field cannot be left unchecked by mistake."""

    class Careless(CheckedValue, frozen=True, kw_only=True):
        words: str

    with pytest.raises(TypeError, match="nothing says how"):
        Careless(words="anything")


@pytest.mark.parametrize("part", ["codes", "runs", "sources", "charges"])
def test_only_a_tuple_is_an_empty_tuple(part: str) -> None:
    """A list without elements passes, and anything that only looks like one is refused."""
    made: Any = Lists
    wrong: list[object] = [Agreeable(), [], "", {}, None]
    assert Lists() == made(**{part: ()})

    for given in wrong:
        with pytest.raises(InvalidValueError, match="is not tuple"):
            made(**{part: given})


def test_a_number_from_one_is_not_zero() -> None:
    """The least value is part of the type."""
    with pytest.raises(InvalidValueError, match="from 1 to"):
        Lists(times=0)
