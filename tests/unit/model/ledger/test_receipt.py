"""Receipts: what is the same in all receipts of a stream is looked at once, and nothing passes for it."""

import pytest

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import new_call_id
from batonpass.model.bodies.body import ToolRequested
from tests.unit.model.base.test_checks import impostor
from tests.unit.model.examples import AT, CHILD, a_receipt

A_REQUEST = ToolRequested(run=CHILD, call=new_call_id(AT), tool="write_file")


@pytest.mark.parametrize("field", ["relay", "relay_key", "cosigner", "root"])
def test_nothing_passes_for_the_constants_of_a_stream(field: str) -> None:
    """A text that says it equals a known one is looked at."""
    known = a_receipt(A_REQUEST)

    with pytest.raises(InvalidValueError, match=r"\.\./etc"):
        a_receipt(A_REQUEST, **{field: impostor("../etc", getattr(known, field))})


@pytest.mark.parametrize("field", ["stream", "relay", "relay_key", "cosigner", "root", "session"])
def test_a_constant_that_cannot_be_compared_is_refused_by_its_name(field: str) -> None:
    """A list is no key of a set: the error is about the field and not about that."""
    with pytest.raises(InvalidValueError, match=field):
        a_receipt(A_REQUEST, **{field: ["x"]})


@pytest.mark.parametrize("number", [0, -1, True, 2**53, "1", 1.0])
@pytest.mark.parametrize("field", ["seq", "epoch"])
def test_numbers_are_whole_and_begin_at_one(field: str, number: object) -> None:
    """Both are looked at together if they are good, and each by its name if not."""
    with pytest.raises(InvalidValueError, match=field):
        a_receipt(A_REQUEST, **{field: number})


def test_an_epoch_may_be_greater_than_a_seq() -> None:
    """They count different things."""
    assert 7 == a_receipt(A_REQUEST, seq=2, epoch=7).epoch
