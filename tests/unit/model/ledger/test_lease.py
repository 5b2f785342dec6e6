"""A lease: the right to work on a handoff, for a while."""

from typing import Final

import pytest
from msgspec.structs import fields, replace

from batonpass.errors import InvalidValueError
from tests.unit.model.examples import (
    HANDOFF,
    LATER,
)
from tests.unit.model.row_examples import (
    LEASE,
)
from tests.unit.model.wrongs import NOT_AGENTS, NOT_IDS, NOT_NUMBERS, NOT_TIMES

WRONG: Final[dict[str, tuple[object, ...]]] = {
    "handoff": (*NOT_IDS, LEASE),
    "holder": (*NOT_AGENTS, "worker\n"),
    "token": NOT_NUMBERS,
    "until": NOT_TIMES,
}


def test_a_lease_says_who_may_work_and_until_when() -> None:
    """It holds what it was given and nothing else."""
    assert (HANDOFF, "worker-1", 3, LATER) == (LEASE.handoff, LEASE.holder, LEASE.token, LEASE.until)
    assert {field.name for field in fields(LEASE)} == set(WRONG)


@pytest.mark.parametrize("name", WRONG, ids="the {} of a lease".format)
def test_an_invalid_field_is_refused_by_name(name: str) -> None:
    """A lease of a thing that cannot be leased, by nobody, or until no time, is never made."""
    for wrong in WRONG[name]:
        with pytest.raises(InvalidValueError) as refused:
            replace(LEASE, **{name: wrong})
        assert name == refused.value.field


def test_the_first_token_is_zero() -> None:
    """A store may count from zero."""
    assert 0 == replace(LEASE, token=0).token


def test_a_renewed_lease_is_another() -> None:
    """A lease is a value: whoever holds it for longer holds a new one, and the old one does not change."""
    with pytest.raises(AttributeError):
        LEASE.until = LATER  # type: ignore[misc]

    assert LEASE != replace(LEASE, token=4)
    assert LEASE == replace(LEASE)
