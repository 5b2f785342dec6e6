"""Every value refuses, by name, a field that cannot be right; and none can be changed afterwards."""

from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta, timezone
from typing import Any

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import LARGEST_INTEGER
from batonpass.model.base.ids import KeyId, StreamId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import (
    Body,
    ChildHead,
    HandoffInitiated,
    Kind,
    Part,
    RunClosed,
    RunRecorded,
    UnknownBody,
)
from batonpass.model.ledger.receipt import SIGNED_BY_ROOT, SIGNED_BY_RUN
from batonpass.model.ledger.stream import StreamKind, genesis, kind_of
from tests.unit.model.examples import (
    AT,
    BARE,
    BODIES,
    CHILD,
    DECIDED,
    HEAD,
    RELAY,
    RUN_KEY,
    SESSION,
    a_receipt,
    an_id,
    names_of,
)
from tests.unit.model.row_examples import (
    CACHED,
    KEY,
    OFFER,
    RUN,
    STATED,
    STREAM,
)
from tests.unit.model.row_wrongs import NAMES, STARTED, WRONG
from tests.unit.model.wrongs import WRONG_IN_BODIES


@pytest.mark.parametrize(
    ("value", "table"), WRONG, ids=[f"every wrong field of {type(value).__name__}" for value, _ in WRONG]
)
def test_an_invalid_field_is_refused_by_name(value: Struct, table: Mapping[str, Sequence[object]]) -> None:
    """Construct anything with one field that cannot be right, and the error names that field."""
    kind = type(value).__name__
    named = [
        (name, wrong, NAMES.get((kind, name), name), refused(value, name, wrong))
        for name, wrongs in table.items()
        for wrong in wrongs
    ]

    assert [] == [row for row in named if row[2] != row[3]]


def refused(value: Any, name: str, wrong: object) -> str:  # noqa: ANN401
    """Return which field is named when a value is made with something wrong in one."""
    try:
        replace(value, **{name: wrong})
    except InvalidValueError as error:
        return error.field
    except Exception as error:  # noqa: BLE001 - shown by the assertion
        return f"{type(error).__name__}: {error}"
    return "accepted"


@pytest.mark.parametrize(
    ("value", "table"), WRONG, ids=[f"every field of {type(value).__name__}" for value, _ in WRONG]
)
def test_no_field_goes_unchecked(value: Struct, table: Mapping[str, Sequence[object]]) -> None:
    """The table above has wrong values for every field that a value has."""
    assert sorted(names_of(value)) == sorted(table)


def test_every_kind_of_body_is_in_the_table() -> None:
    """A new kind of receipt needs an example and a row."""
    assert set(Kind) == set(BODIES) == set(WRONG_IN_BODIES)


@pytest.mark.parametrize("value", [value for value, _ in WRONG], ids=lambda value: f"{type(value).__name__}, frozen")
def test_a_value_cannot_be_changed(value: Struct) -> None:
    """No field of a value can be set, and none can be added."""
    for name in names_of(value):
        with pytest.raises(AttributeError):
            setattr(value, name, None)
    with pytest.raises((AttributeError, TypeError)):
        value.surprise = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", BODIES.values(), ids=lambda body: f"a {body.kind} receipt")
def test_a_valid_value_is_equal_to_its_copy(body: Body) -> None:
    """The examples are valid, and values are compared by what they hold."""
    assert a_receipt(body) == a_receipt(replace(body))


@pytest.mark.parametrize("kind", Kind, ids="a bare {}".format)
def test_what_has_a_default_may_be_left_out(kind: Kind) -> None:
    """A receipt needs to say only what its kind cannot do without; the example says something else everywhere."""
    full, bare = BODIES[kind], BARE[kind]
    defaults = {field.name for field in fields(bare) if field.default is not NODEFAULT}

    assert defaults == {name for name in names_of(bare) if getattr(full, name) != getattr(bare, name)}
    assert a_receipt(bare).body == bare


@pytest.mark.parametrize(
    "kind",
    sorted(SIGNED_BY_RUN | SIGNED_BY_ROOT),
    ids="{} needs a second signature".format,
)
def test_a_cosigned_kind_names_its_cosigner(kind: Kind) -> None:
    """What runs and the root key sign says by whom."""
    with pytest.raises(InvalidValueError, match="needs a second signature") as refused:
        a_receipt(BODIES[kind], cosigner=None)

    assert "cosigner" == refused.value.field


@pytest.mark.parametrize(
    "kind",
    sorted(set(Kind) - SIGNED_BY_RUN - SIGNED_BY_ROOT),
    ids="{} needs no second signature".format,
)
def test_other_kinds_do_without_a_cosigner(kind: Kind) -> None:
    """The rest is signed by the relay alone."""
    assert a_receipt(BODIES[kind], cosigner=None).cosigner is None


@pytest.mark.parametrize("body", BODIES.values(), ids=lambda body: f"a {body.kind} receipt has one home")
def test_a_receipt_stands_in_its_own_stream(body: Body) -> None:
    """A receipt of one run, handoff or relay is refused in the stream of another of the same kind."""
    prefix = a_receipt(body).stream.partition("_")[0]
    with pytest.raises(InvalidValueError, match="cannot stand in") as refused:
        a_receipt(body, stream=StreamId(an_id(prefix, 99)))

    assert "stream" == refused.value.field


def test_a_kind_of_the_future_may_stand_in_any_stream() -> None:
    """Where a body of an unknown kind belongs, only a newer version can tell."""
    assert StreamId(CHILD) == a_receipt(UnknownBody("memory.taken"), stream=StreamId(CHILD)).stream


@pytest.mark.parametrize("carrier", Carrier, ids="carried by its {}".format)
def test_a_handoff_begins_waiting_or_held(carrier: Carrier) -> None:
    """A handoff begins where its carrier waits for it, or held; every other state is refused."""
    begun = [state for state in State if begins(carrier, state)]

    assert [State.HELD, {Carrier.CALLER: State.OFFERED, Carrier.WORKER: State.READY}[carrier]] == begun


def begins(carrier: Carrier, state: State) -> bool:
    """Return whether a handoff may begin like this."""
    return refused(replace(_initiated(), carrier=carrier, state=State.HELD), "state", state) == "accepted"


def test_two_children_of_one_name_are_refused() -> None:
    """A close-out that lists a child twice, at different heads, proves nothing."""
    with pytest.raises(InvalidValueError, match="twice") as refused:
        replace(_closed(), children=(HEAD, ChildHead(run=CHILD, seq=4, head=HEAD.head)))

    assert "children" == refused.value.field


def test_two_items_of_one_id_are_refused() -> None:
    """An item that is named twice, as two different parts, would mean two things."""
    recorded = BODIES[Kind.RUN_RECORDED]
    assert isinstance(recorded, RunRecorded)
    with pytest.raises(InvalidValueError, match="twice") as refused:
        replace(recorded, items=(DECIDED, replace(DECIDED, part=Part.CLAIM)))

    assert "items" == refused.value.field


@pytest.mark.parametrize(
    "given",
    [("key",), ("scope",), ("fingerprint",), ("key", "scope"), ("key", "fingerprint"), ("scope", "fingerprint")],
    ids=" and ".join,
)
def test_a_key_its_scope_and_a_fingerprint_come_together(given: tuple[str, ...]) -> None:
    """An offer has all three of them or none; with one or two it could not be recognised."""
    left_out: dict[str, Any] = dict.fromkeys({"key", "scope", "fingerprint"} - set(given))
    with pytest.raises(InvalidValueError, match="come together") as refused:
        replace(_initiated(), **left_out)

    assert "key" == refused.value.field
    assert replace(_initiated(), key=None, scope=None, fingerprint=None).key is None


@pytest.mark.parametrize("number", [1, LARGEST_INTEGER], ids=["the least", "the largest"])
def test_the_limits_themselves_are_allowed(number: int) -> None:
    """Numbers go from 1 to the largest that JSON keeps exact."""
    assert (number, number) == (replace(STREAM, seq=number).seq, replace(STARTED, seq=number).seq)


def test_utc_by_any_name_is_utc() -> None:
    """A zone without an offset is UTC, whatever it is called."""
    at = AT.astimezone(timezone(timedelta(0), "Zulu"))

    assert AT == replace(STARTED, at=at).at == at.astimezone(UTC)


def test_an_error_shows_no_more_than_a_line() -> None:
    """A megabyte in the wrong field does not become a megabyte of message."""
    with pytest.raises(InvalidValueError) as refused:
        replace(STREAM, head="x" * 1_000_000)

    assert len(str(refused.value)) < 200


def test_an_optional_part_may_be_left_out() -> None:
    """A root run has no parent, an open one no end, a relay's stream no tree, a root key no relay."""
    run = replace(RUN, parent=None, handoff=None, ended_at=None, series=None)
    offer = replace(OFFER, scope=None, key=None, deadline=None)

    assert (None, None, None, None) == (run.parent, run.handoff, run.ended_at, run.series)
    assert (None, None, None) == (offer.scope, offer.key, offer.deadline)
    assert replace(STREAM, id=StreamId(RELAY), root=None).root is None
    assert replace(KEY, relay=None).relay is None
    assert replace(OFFER, run=None, attempt=0).run is None
    assert (None, None) == (replace(STARTED, root=None).root, replace(STARTED, session=None).session)
    assert SESSION == STARTED.session
    assert KeyId("ef" * 32) == STARTED.cosigner


@pytest.mark.parametrize("kind", StreamKind, ids="the stream of a {}".format)
def test_an_id_tells_its_kind_of_stream(kind: StreamKind) -> None:
    """A stream is of the kind that its prefix says."""
    stream = StreamId(an_id(kind))

    assert kind == kind_of(stream) == replace(STREAM, id=stream).kind


def test_a_kept_result_goes_by_its_call() -> None:
    """Among derived rows, a result that is given again is named by the call that made it."""
    assert CACHED.call == CACHED.id


def test_a_statement_goes_by_the_id_of_its_words() -> None:
    """Among derived rows, what a human said is named by the content that holds it."""
    assert STATED.item == STATED.id


def test_a_genesis_binds_ledger_and_root_key() -> None:
    """Another ledger or another root key begins elsewhere."""
    first, second = an_id("ledger", 1), an_id("ledger", 2)
    made = {genesis(ledger, key) for ledger in (first, second) for key in (RUN_KEY, RUN_KEY[::-1])}  # type: ignore[arg-type]

    assert 4 == len(made)


def _initiated() -> HandoffInitiated:
    body = BODIES[Kind.HANDOFF_INITIATED]
    assert isinstance(body, HandoffInitiated)
    return body


def _closed() -> RunClosed:
    body = BODIES[Kind.RUN_CLOSED]
    assert isinstance(body, RunClosed)
    return body
