"""Turns database rows into values.

A row that cannot be a value was tampered with. It raises a `VerificationError` that names the row, so that the verifier
can report it.
"""

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
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RolledQuery, RollupMark
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, RunState, Stated
from batonpass.model.ledger.seal import Seal
from batonpass.model.ledger.stream import Stream
from batonpass.store.port import LedgerInfo, Touched

Row: TypeAlias = tuple[Any, ...]
Value = TypeVar("Value")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FLAGS: Final = {0: False, 1: True}  # SQLite stores 0 and 1; PostgreSQL's False and True are equal to them
_MICROSECOND: Final = timedelta(microseconds=1)
_NEVER: Final = 2**62  # microseconds: later than any time


def _naming(
    what: str, finding: type[VerificationError] = DerivedStateError, *, named_by: int = 0
) -> Callable[[Callable[[Row], Value]], Callable[[Row], Value]]:
    """Turn any error about a row's values into a finding that names the row by one of its columns."""

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


# By text: calling an enumeration costs three Python calls, and every row has one or two members.
_PLACES: Final = {str(member): member for member in Place}
_CARRIERS: Final = {str(member): member for member in Carrier}
_STATES: Final = {str(member): member for member in State}
_RUN_STATES: Final = {str(member): member for member in RunState}


# SQLite accepts any type in any column, and a reader that expects bytes would fail on text. So values that the model
# does not check by itself are checked here. A value of the exact type needs no further check, and the tests inline save
# a call.
def _bytes(field: str, value: Any) -> Any:  # noqa: ANN401 - a column may hold anything
    return value if value is None or type(value) is bytes else require_instance(field, value, bytes)


def _text(field: str, value: Any) -> Any:  # noqa: ANN401 - a column may hold anything
    return value if value is None or type(value) is str else require_instance(field, value, str)


def micros(at: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """Return the time that is so many microseconds after 1970. Raises `TypeError` if the value is not an integer."""
    if not isinstance(value, int):
        raise TypeError(f"{shorten(value)} is no time in microseconds")
    return _EPOCH + value * _MICROSECOND


@_naming("ledger", EditedError)
def info(row: Row) -> LedgerInfo:
    """Return the identity of a ledger from its only row."""
    identifier, root_key = row
    return LedgerInfo(id=require_instance("id", identifier, str), root_key=require_digest("root_key", root_key))


@_naming("step of the schema")
def applied(row: Row) -> tuple[int, datetime]:
    """Return the version of an applied migration, and when it was applied."""
    version, _, at = row
    return version, moment(at)


@_naming("id")
def identifier(row: Row) -> str:
    """Return an id from a row that holds nothing else."""
    return require_text("id", row[0])


@_naming("path")
def path(row: Row) -> str:
    """Return a path from a row that holds nothing else."""
    return require_text("path", row[0])


@_naming("stream")
def stream(row: Row) -> Stream:
    """Return the stream that a row holds."""
    identifier, root, seq, head, epoch, is_open = row
    return Stream(id=identifier, root=root, seq=seq, head=head, epoch=epoch, open=_FLAGS[is_open])


@_naming("run")
def run(row: Row) -> Run:
    """Return the run that a row holds."""
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
    """Return the handoff that a row holds."""
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
    """Return the statement that a row holds."""
    item, root, digest, by, at = row
    return Stated(item=item, root=root, digest=digest, by=by, at=moment(at))


@_naming("lease")
def lease(row: Row) -> Lease:
    """Return the lease that a row holds; somebody must hold it."""
    identifier, holder, token, until = row
    return Lease(handoff=identifier, holder=holder, token=token, until=moment(until))


@_naming("key")
def key(row: Row) -> Key:
    """Return the key that a row holds."""
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
    """Return the seal that a row holds."""
    size, previous, root, note, frontier = row
    return Seal(size=size, previous=previous, root=root, note=note, frontier=frontier)


@_naming("content", ContentMismatchError)
def content(row: Row) -> StoredContent:
    """Return the content that a row holds; the row is joined with its receipt."""
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
    """Return the change that a row holds; the row is joined with its receipt."""
    identifier, path, receipt_id = row
    return Touched(
        path=require_text("path", path),
        receipt=ReceiptId(require_id("receipt", receipt_id, RECEIPT)),
        content=ContentId(require_id("content", identifier, CONTENT)),
    )


@_naming("receipt", EditedError, named_by=1)
def receipt(row: Row) -> StoredReceipt:
    """Return the receipt that a row holds; the row is joined with its stream and its position."""
    position, identifier, stream_id, seq, kind, payload, relay_signature, cosignature = row
    return StoredReceipt(
        position=position,
        id=ReceiptId(identifier if type(identifier) is str else require_instance("id", identifier, str)),
        # If its stream row is gone, it gets a name that no stream has, and the verifier reports the receipt.
        stream=_text("stream", stream_id) or StreamId(""),
        seq=seq if type(seq) is int else require_instance("seq", seq, int),
        kind=kind if type(kind) is str else require_instance("kind", kind, str),
        payload=payload if type(payload) is bytes else require_instance("payload", payload, bytes),
        relay_signature=relay_signature
        if type(relay_signature) is bytes
        else require_instance("relay_signature", relay_signature, bytes),
        cosignature=cosignature if type(cosignature) is bytes else _bytes("cosignature", cosignature),
    )


@_naming("cached result of")
def cached(row: Row) -> Cached:
    """Return the cached result that a row holds."""
    call, key_, receipt_id, until = row
    return Cached(call=call, key=key_, receipt=receipt_id, until=moment(until))


@_naming("charged account")
def charged(row: Row) -> Charged:
    """Return the charged amount that a row holds."""
    account, unit, used = row
    return Charged(account=account, unit=Unit(unit), used=used)


@_naming("remark")
def remark(row: Row) -> Remark:
    """Return the remark that a row holds."""
    said, name, receipt_id = row
    return Remark(said=RemarkKind(said), name=name, receipt=receipt_id)


@_naming("roll-up mark")
def rollup_mark(row: Row) -> RollupMark:
    """Return the mark that a row holds."""
    version, position = row
    return RollupMark(version=version, position=position)


@_naming("rolled handoff")
def rolled_handoff(row: Row) -> RolledHandoff:
    """Return the roll-up of a handoff that a row holds."""
    handoff_id, agent, task_kind, config, closed_at, contents, body = row
    return RolledHandoff(
        handoff=handoff_id,
        agent=agent,
        task_kind=task_kind,
        config=config,
        closed_at=moment(closed_at),
        contents=tuple(contents.split()),
        body=bytes(body),
    )


@_naming("rolled day")
def rolled_day(row: Row) -> RolledDay:
    """Return the sum of a day that a row holds."""
    agent, task_kind, config, day, body = row
    return RolledDay(agent=agent, task_kind=task_kind, config=config, day=day, body=bytes(body))


@_naming("held call")
def held_call(row: Row) -> HeldCall:
    """Return the held call that a row holds."""
    call, run_id, receipt_id = row
    return HeldCall(call=call, run=run_id, receipt=receipt_id)


@_naming("decided call")
def decided_call(row: Row) -> DecidedCall:
    """Return the ruling about a held call that a row holds."""
    call, run_id, receipt_id, approved = row
    return DecidedCall(call=call, run=run_id, receipt=receipt_id, approved=_FLAGS[approved])


def rolled_values(query: RolledQuery) -> dict[str, object]:
    """Return the values of a query as the parameters of its statement, without its limit."""
    return {
        "agent": query.agent,
        "task_kind": query.task_kind,
        "since": 0 if query.since is None else micros(query.since),
        "until": _NEVER if query.until is None else micros(query.until),
        "holding": query.holding,
    }


def rolled_row(rolled: RolledHandoff) -> tuple[object, ...]:
    """Return the row of a closed handoff."""
    return (
        rolled.handoff,
        rolled.agent,
        rolled.task_kind,
        rolled.config,
        micros(rolled.closed_at),
        " ".join(rolled.contents),
        rolled.body,
    )
