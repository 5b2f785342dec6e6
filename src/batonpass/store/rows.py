"""Rows to values. A row that cannot be a value was tampered with; it is named as such, not passed on."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Final, TypeAlias, TypeVar

from batonpass.errors import (
    ContentMismatchError,
    DerivedStateError,
    EditedError,
    InvalidValueError,
    VerificationError,
)
from batonpass.model.base.checks import require_digest, require_instance, require_text, shorten
from batonpass.model.base.ids import CONTENT, RECEIPT, ContentId, ReceiptId, StreamId, require_id
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.grants.charge import Charged, Unit
from batonpass.model.ledger.content import Place, StoredContent
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.receipt import StoredReceipt
from batonpass.model.ledger.remark import Remark, RemarkKind
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Stream
from batonpass.store.port import LedgerInfo, Touched

Row: TypeAlias = tuple[Any, ...]
Value = TypeVar("Value")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FLAGS: Final = {0: False, 1: True}  # SQLite's; PostgreSQL's own are equal to them
_MICROSECOND: Final = timedelta(microseconds=1)


def _naming(
    what: str, finding: type[VerificationError] = DerivedStateError, *, named_by: int = 0
) -> Callable[[Callable[[Row], Value]], Callable[[Row], Value]]:
    """Turn any trouble with a row's values into a finding that names the row by one of its columns."""

    def decorate(make: Callable[[Row], Value]) -> Callable[[Row], Value]:
        @wraps(make)
        def made(row: Row) -> Value:
            try:
                return make(row)
            except InvalidValueError as error:
                raise finding(error.problem, stream=f"{what} {row[named_by]}", field=error.field) from None
            except (ValueError, TypeError, OverflowError, KeyError, AttributeError) as error:
                raise finding(f"cannot be read: {error}", stream=f"{what} {row[named_by]}") from None

        return made

    return decorate


# By their texts. To call an enumeration costs three calls, and every row that is read has one or two.
_PLACES: Final = {str(member): member for member in Place}
_CARRIERS: Final = {str(member): member for member in Carrier}
_STATES: Final = {str(member): member for member in State}
_RUN_STATES: Final = {str(member): member for member in RunState}


# SQLite keeps any type in any column, and a reader that trusts it dies of a word where bytes belong. What a value of
# ours does not check by itself is checked here. What is of the very type is not handed on to be looked at again.
def _bytes(field: str, value: Any) -> Any:  # noqa: ANN401 - whatever stands in a column
    return value if value is None or type(value) is bytes else require_instance(field, value, bytes)


def _text(field: str, value: Any) -> Any:  # noqa: ANN401 - whatever stands in a column
    return value if value is None or type(value) is str else require_instance(field, value, str)


def micros(at: datetime) -> int:
    """Return a moment as microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """Return microseconds since 1970 as a moment. Raises `TypeError` for what is no whole number."""
    if not isinstance(value, int):
        raise TypeError(f"{shorten(value)} is no time in microseconds")
    return _EPOCH + value * _MICROSECOND


@_naming("ledger", EditedError)
def info(row: Row) -> LedgerInfo:
    """Return the one row that says who a ledger is."""
    identifier, root_key = row
    return LedgerInfo(id=require_instance("id", identifier, str), root_key=require_digest("root_key", root_key))


@_naming("step of the schema")
def applied(row: Row) -> tuple[int, datetime]:
    """Return which step of the schema was applied, and when."""
    version, _, at = row
    return version, moment(at)


@_naming("id")
def identifier(row: Row) -> str:
    """Return an id that was asked for by itself."""
    return require_text("id", row[0])


@_naming("path")
def path(row: Row) -> str:
    """Return a path that was asked for by itself."""
    return require_text("path", row[0])


@_naming("stream")
def stream(row: Row) -> Stream:
    """Return a row of streams."""
    identifier, root, seq, head, epoch, is_open = row
    return Stream(id=identifier, root=root, seq=seq, head=head, epoch=epoch, open=_FLAGS[is_open])


@_naming("run")
def run(row: Row) -> Run:
    """Return a row of runs."""
    identifier, root, parent, handoff_id, attempt, agent, principal, state, started_at, ended_at, series, session = row
    return Run(
        id=identifier,
        root=root,
        parent=parent,
        handoff=handoff_id,
        attempt=attempt,
        agent=agent,
        principal=principal,
        state=_RUN_STATES.get(state) or RunState(state),
        started_at=moment(started_at),
        ended_at=None if ended_at is None else moment(ended_at),
        series=series,
        session=session,
    )


@_naming("handoff")
def handoff(row: Row) -> Handoff:
    """Return a row of handoffs."""
    identifier, root, parent, agent, carrier, state, attempt, run_id, initiated, seq, scope, offer_key, deadline = row
    return Handoff(
        id=identifier,
        root=root,
        parent=parent,
        to=agent,
        carrier=_CARRIERS.get(carrier) or Carrier(carrier),
        state=_STATES.get(state) or State(state),
        attempt=attempt,
        run=run_id,
        initiated=initiated,
        seq=seq,
        scope=scope,
        key=offer_key,
        deadline=None if deadline is None else moment(deadline),
    )


@_naming("statement")
def stated(row: Row) -> Stated:
    """Return a row of statements."""
    item, root, digest, by, at = row
    return Stated(item=item, root=root, digest=digest, by=by, at=moment(at))


@_naming("lease")
def lease(row: Row) -> Lease:
    """Return a row of leases that are held."""
    identifier, holder, token, until = row
    return Lease(handoff=identifier, holder=holder, token=token, until=moment(until))


@_naming("key")
def key(row: Row) -> Key:
    """Return a row of keys."""
    identifier, role, public_key, relay, status, principal = row
    return Key(
        id=identifier,
        role=KeyRole(role),
        public_key=public_key,
        relay=relay,
        status=KeyStatus(status),
        principal=principal,
    )


@_naming("seal")
def seal(row: Row) -> Seal:
    """Return a row of seals."""
    size, previous, root, note, frontier = row
    return Seal(size=size, previous=previous, root=root, note=note, frontier=frontier)


@_naming("content", ContentMismatchError)
def content(row: Row) -> StoredContent:
    """Return a row of contents, joined with its receipt."""
    identifier, receipt_id, place, salt, body = row
    return StoredContent(
        id=ContentId(identifier if type(identifier) is str else require_instance("id", identifier, str)),
        receipt=_text("receipt", receipt_id),
        place=_PLACES.get(place) or Place(place),
        salt=salt if type(salt) is bytes else _bytes("salt", salt),
        body=body if type(body) is bytes else _bytes("body", body),
    )


@_naming("touch")
def touched(row: Row) -> Touched:
    """Return a row of touches, joined with its receipt."""
    identifier, path, receipt_id = row
    return Touched(
        path=require_text("path", path),
        receipt=ReceiptId(require_id("receipt", receipt_id, RECEIPT)),
        content=ContentId(require_id("content", identifier, CONTENT)),
    )


@_naming("receipt", EditedError, named_by=1)
def receipt(row: Row) -> StoredReceipt:
    """Return a row of receipts, joined with its stream and its position."""
    position, identifier, stream_id, seq, kind, payload, relay_signature, cosignature = row
    return StoredReceipt(
        position=position,
        id=ReceiptId(identifier if type(identifier) is str else require_instance("id", identifier, str)),
        # Of a receipt whose stream is gone, a name that no stream has: the verifier says which receipt it is.
        stream=_text("stream", stream_id) or StreamId(""),
        seq=seq if type(seq) is int else require_instance("seq", seq, int),
        kind=kind if type(kind) is str else require_instance("kind", kind, str),
        payload=payload if type(payload) is bytes else require_instance("payload", payload, bytes),
        relay_signature=relay_signature
        if type(relay_signature) is bytes
        else require_instance("relay_signature", relay_signature, bytes),
        cosignature=_bytes("cosignature", cosignature),
    )


@_naming("cached result of")
def cached(row: Row) -> Cached:
    """Return a row of cached results."""
    call, key_, receipt_id, until = row
    return Cached(call=call, key=key_, receipt=receipt_id, until=moment(until))


@_naming("charged account")
def charged(row: Row) -> Charged:
    """Return a row of what is used up."""
    account, unit, used = row
    return Charged(account=account, unit=Unit(unit), used=used)


@_naming("remark")
def remark(row: Row) -> Remark:
    """Return a row of remarks."""
    said, name, receipt_id = row
    return Remark(said=RemarkKind(said), name=name, receipt=receipt_id)


@_naming("held call")
def held_call(row: Row) -> HeldCall:
    """Return a row of held calls."""
    call, run_id, receipt_id = row
    return HeldCall(call=call, run=run_id, receipt=receipt_id)


@_naming("decided call")
def decided_call(row: Row) -> DecidedCall:
    """Return a row of decided calls."""
    call, run_id, receipt_id, approved = row
    return DecidedCall(call=call, run=run_id, receipt=receipt_id, approved=_FLAGS[approved])
