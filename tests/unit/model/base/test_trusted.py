"""Values that are made of checked ones are made without checks, and cannot be told from any others."""

import copy
import pickle
from datetime import timedelta
from typing import Final

import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import Kind
from batonpass.model.ledger.projection import Projection, project
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Run
from batonpass.model.ledger.stream import Stream
from tests.unit.model.examples import BARE, BODIES, DIGEST, PARENT, a_receipt

STREAM: Final = Stream(id=PARENT, root=PARENT, seq=3, head=DIGEST, epoch=1, open=True)  # type: ignore[arg-type]
RECEIPT: Final = a_receipt(BODIES[Kind.RUN_STARTED])


@pytest.mark.parametrize("checked", [STREAM, RECEIPT], ids=["a stream", "a receipt"])
def test_it_is_the_value_that_its_constructor_makes(checked: Struct) -> None:
    """Type, equality, text, copies and checks of what is made of it later are those of any other."""
    made = unchecked_maker(type(checked))(**asdict(checked))

    assert type(made) is type(checked)
    assert made == checked
    assert repr(made) == repr(checked)
    assert copy.copy(made) == checked
    assert pickle.loads(pickle.dumps(made)) == checked  # noqa: S301 - our own bytes
    with pytest.raises(AttributeError):
        made.seq = 2  # type: ignore[attr-defined]
    with pytest.raises(InvalidValueError):
        replace(made, seq=0)


def test_values_of_both_makers_are_one_in_a_set() -> None:
    """They have one hash."""
    assert 1 == len({STREAM, unchecked_maker(Stream)(**asdict(STREAM))})


def test_it_looks_at_nothing() -> None:
    """Else it would save nothing; whoever uses it is listed in a house test."""
    assert -1 == unchecked_maker(Stream)(**asdict(STREAM) | {"seq": -1}).seq


def test_the_constructor_goes_on_checking() -> None:
    """A maker without checks takes none away from anybody else."""
    unchecked_maker(Stream)

    with pytest.raises(InvalidValueError, match="seq"):
        replace(STREAM, seq=0)


def test_what_is_missing_is_missed() -> None:
    """Parts are counted as ever."""
    with pytest.raises(TypeError, match="required argument"):
        unchecked_maker(Run)()  # type: ignore[call-arg]


def rows_of(change: Projection) -> list[Struct]:
    """Return the values in a projection, at any depth of tuples."""
    parts = [part for given in asdict(change).values() for part in (given if isinstance(given, tuple) else (given,))]
    return [part for part in parts if isinstance(part, Struct)]


@pytest.mark.parametrize("bodies", [BODIES, BARE], ids=["with everything", "bare"])
@pytest.mark.parametrize("kind", Kind, ids="of a {} receipt".format)
def test_a_row_that_was_made_unchecked_passes_every_check(kind: Kind, bodies: dict[Kind, Struct]) -> None:
    """What a receipt's checks let through, the checks of the rows that follow from it would have let through too."""
    rows = rows_of(project(a_receipt(bodies[kind]), DIGEST))  # type: ignore[arg-type]

    assert rows == [replace(row) for row in rows]


def test_a_receipt_that_contradicts_itself_is_found_without_its_other_checks() -> None:
    """What each part of a draft cannot know is asked again when they come together."""
    parts = asdict(RECEIPT)
    with pytest.raises(InvalidValueError, match=r"stream: a run\.started receipt of .* cannot stand in"):
        unchecked_maker(Receipt)(**parts | {"stream": "run_" + "7" * 26}).require_consistent()
    with pytest.raises(InvalidValueError, match=r"cosigner: run\.started needs a second signature"):
        unchecked_maker(Receipt)(**parts | {"cosigner": None}).require_consistent()
    with pytest.raises(InvalidValueError, match=r"body: .* is not the body of a receipt"):
        unchecked_maker(Receipt)(**parts | {"body": timedelta(1)}).require_consistent()
