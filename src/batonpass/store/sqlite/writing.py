"""Writing one entry inside a transaction: the compare-and-set, the receipt, its contents, and what it changes."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NoReturn

import apsw

from batonpass.errors import DuplicateReceiptError, NotFoundError, OfferedAlreadyError, UnknownRelayError
from batonpass.model.bodies import ChildHead
from batonpass.model.content import Content, Place
from batonpass.model.entry import Entry
from batonpass.model.ids import KeyId, StreamId
from batonpass.model.key import Key, KeyRole, KeyStatus
from batonpass.model.lifecycle import Carrier, Event, State, sources, target
from batonpass.model.projection import HandoffMoved, KeyChanged, Projection, enrols_itself
from batonpass.model.receipt import SignedReceipt
from batonpass.model.run import Cached, Handoff, Run, Stated
from batonpass.model.stream import Stream
from batonpass.store import rows
from batonpass.store.admission import (
    is_there,
    next_state,
    require_anchor,
    require_approver,
    require_fence,
    require_next,
    require_within,
)
from batonpass.store.sql import Queries
from batonpass.store.sqlite import leasing

QUERIES: Final = Queries("batonpass.store.sqlite")
LARGEST_ROW_BODY: Final = 64 * 1024

_MOVE_HANDOFF: Final = QUERIES["move_handoff"]
MOVES: Final = {
    event: {
        "caller_sources": f",{','.join(sources(event, Carrier.CALLER))},",
        "worker_sources": f",{','.join(sources(event, Carrier.WORKER))},",
        "caller_target": target(event, Carrier.CALLER),
        "worker_target": target(event, Carrier.WORKER),
    }
    for event in Event
}
_MOVE: Final = QUERIES["move_stream"]
_OPEN: Final = QUERIES["open_stream"]
_ADD_RECEIPT: Final = QUERIES["add_receipt"]
_ADD_CONTENT: Final = QUERIES["add_content"]
_ADD_TOUCH: Final = QUERIES["add_touch"]
_CHARGE: Final = QUERIES["charge"]
_GET_USED: Final = QUERIES["get_used"]


def write_entries(connection: apsw.Connection, entries: Sequence[Entry]) -> None:
    """Write entries that stand or fall together."""
    for entry in entries:
        write_entry(connection, entry)


def write_entry(connection: apsw.Connection, entry: Entry) -> None:
    """Write an entry, or raise and leave the transaction to be rolled back."""
    signed = entry.signed
    receipt = signed.receipt
    change = entry.change
    try:
        number = _take_head(connection, signed, change)
        if number is None:
            return
        connection.execute(
            _ADD_RECEIPT,
            (
                receipt.id,
                number,
                receipt.seq,
                receipt.kind,
                signed.payload,
                signed.relay_signature,
                signed.cosignature,
            ),
        )
        position = connection.last_insert_rowid()
        for content in entry.contents:
            connection.execute(_ADD_CONTENT, (content.ref.id, position, *_placed(content)))
        for touch in entry.touches:
            connection.execute(_ADD_TOUCH, (touch.content, position, touch.path))
    except apsw.ConstraintError:
        raise DuplicateReceiptError(receipt.id) from None
    _apply(connection, change, entry.token)
    for limit in entry.within:
        row = connection.execute(_GET_USED, (limit.account, limit.unit)).fetchone()
        require_within(0 if row is None else rows.charged(row).used, limit)


def is_blob(content: Content) -> bool:
    """Return whether a content is kept in a file of its own."""
    return len(content.body) > LARGEST_ROW_BODY


def _take_head(connection: apsw.Connection, signed: SignedReceipt, change: Projection) -> int | None:
    """Make a receipt its stream's head and return the stream's number; None if it is the head already."""
    receipt = signed.receipt
    values = {
        "stream": receipt.stream,
        "root": receipt.root,
        "seq": receipt.seq,
        "digest": signed.digest,
        "previous": receipt.previous,
        "epoch": receipt.epoch,
        "held": receipt.epoch - change.bumps,
        "open": not change.closes,
        "key": receipt.relay_key,
        "enrols_itself": enrols_itself(receipt),
    }
    if (row := connection.execute(_OPEN if receipt.seq == 1 else _MOVE, values).fetchone()) is not None:
        return int(row[0])
    stream = _find_stream(connection, receipt.stream)
    if is_there(stream, signed):
        return None
    if not enrols_itself(receipt):
        _require_active(connection, receipt.relay_key)
    require_next(stream, signed, bumps=change.bumps)
    raise AssertionError("a receipt that fits its stream was refused")


def _find_stream(connection: apsw.Connection, stream: StreamId) -> Stream | None:
    row = connection.execute(QUERIES["get_stream"], (stream,)).fetchone()
    return None if row is None else rows.stream(row)


def _find_key(connection: apsw.Connection, key: KeyId) -> Key | None:
    row = connection.execute(QUERIES["get_key"], (key,)).fetchone()
    return None if row is None else rows.key(row)


def _require_active(connection: apsw.Connection, relay_key: KeyId) -> None:
    key = _find_key(connection, relay_key)
    if key is None or key.role is not KeyRole.RELAY or key.status is not KeyStatus.ACTIVE:
        raise UnknownRelayError(relay_key, enrolled=key is not None)


def _placed(content: Content) -> tuple[str, bytes, bytes | None]:
    return (Place.FILE, content.salt, None) if is_blob(content) else (Place.ROW, content.salt, content.body)


def _apply(connection: apsw.Connection, change: Projection, token: int | None) -> None:
    if change.fences is not None:
        _fence(connection, change.fences)
    if change.run_opened is not None:
        _add_run(connection, change.run_opened)
    if (ended := change.run_ended) is not None:
        connection.execute(QUERIES["end_run"], (ended.state, rows.micros(ended.at), ended.run))
    if change.handoff_opened is not None:
        _add_handoff(connection, change.handoff_opened)
    if change.handoff_moved is not None:
        _move_handoff(connection, change.handoff_moved, token)
    for stated in change.stated:
        _add_statement(connection, stated)
    _apply_to_calls(connection, change)
    _apply_to_keys(connection, change)
    for content in change.erased:
        connection.execute(QUERIES["erase_content"], (content,))
        connection.execute(QUERIES["erase_touch"], (content,))


def _apply_to_calls(connection: apsw.Connection, change: Projection) -> None:
    if change.cached is not None:
        _add_cached(connection, change.cached)
    if (held := change.call_held) is not None:
        _add_call(connection, "add_held_call", (held.call, held.run, held.receipt))
    if (decided := change.call_decided) is not None:
        values = (decided.call, decided.run, decided.receipt, decided.approved)
        _add_call(connection, "add_decided_call", values)
    for remark in change.remarks:
        connection.execute(QUERIES["add_remark"], (remark.said, remark.name, remark.receipt))
    for charge in change.charges:
        connection.execute(_CHARGE, (charge.account, charge.unit, charge.amount))


def _apply_to_keys(connection: apsw.Connection, change: Projection) -> None:
    if change.proven_by is not None:
        require_approver(_find_key(connection, change.proven_by), change.proven_by)
    if change.key_added is not None:
        add_key(connection, change.key_added)
    if change.key_changed is not None:
        _change_key(connection, change.key_changed)


def _fence(connection: apsw.Connection, at: ChildHead) -> None:
    values = {"run": at.run, "seq": at.seq, "head": at.head}
    if connection.execute(QUERIES["fence_stream"], values).fetchone() is None:
        require_fence(_find_stream(connection, StreamId(at.run)), at)


def _add_run(connection: apsw.Connection, run: Run) -> None:
    connection.execute(
        QUERIES["add_run"],
        (
            run.id,
            run.root,
            run.parent,
            run.handoff,
            run.attempt,
            run.agent,
            run.principal,
            run.state,
            rows.micros(run.started_at),
            _optional_micros(run.ended_at),
            run.series,
            run.session,
        ),
    )


def _add_handoff(connection: apsw.Connection, handoff: Handoff) -> None:
    try:
        connection.execute(
            QUERIES["add_handoff"],
            (
                handoff.id,
                handoff.root,
                handoff.parent,
                handoff.to,
                handoff.carrier,
                handoff.state,
                handoff.attempt,
                handoff.run,
                handoff.initiated,
                handoff.seq,
                handoff.scope,
                handoff.key,
                _optional_micros(handoff.deadline),
            ),
        )
    except apsw.ConstraintError:
        _refuse_handoff(connection, handoff)
    if handoff.carrier is Carrier.WORKER and handoff.state is State.READY:
        leasing.follow(connection, handoff.id, handoff.state, handoff.to)


def _refuse_handoff(connection: apsw.Connection, handoff: Handoff) -> NoReturn:
    row = connection.execute(QUERIES["get_offer"], (handoff.scope, handoff.key)).fetchone()
    if row is not None and row[0] != handoff.id:
        raise OfferedAlreadyError(row[0])
    raise DuplicateReceiptError(handoff.id)


def _move_handoff(connection: apsw.Connection, moved: HandoffMoved, token: int | None) -> None:
    accepts = moved.event is Event.ACCEPT
    values = MOVES[moved.event] | {
        "handoff": moved.handoff,
        "attempt": moved.attempt if moved.attempt is None else moved.attempt - accepts,
        "new_attempt": moved.attempt if accepts else None,
        "new_run": moved.run,
        "new_agent": moved.to,
        "ends": moved.ends,
        "anchor": moved.anchor,
    }
    row = connection.execute(_MOVE_HANDOFF, values).fetchone()
    if row is None:
        _refuse_move(connection, moved)
    carrier, state, agent = row
    if token is not None:
        leasing.require_lease(connection, moved.handoff, token)
    if carrier == Carrier.WORKER:
        leasing.follow(connection, moved.handoff, state, agent)


def _refuse_move(connection: apsw.Connection, moved: HandoffMoved) -> NoReturn:
    row = connection.execute(QUERIES["get_handoff_row"], (moved.handoff,)).fetchone()
    if row is None:
        raise NotFoundError("handoff", moved.handoff)
    handoff = rows.handoff(row)
    next_state(handoff, moved)
    require_anchor(handoff, _find_stream(connection, StreamId(handoff.id)), moved)
    raise AssertionError("a step that the table allows was refused")


def _add_statement(connection: apsw.Connection, stated: Stated) -> None:
    try:
        connection.execute(
            QUERIES["add_statement"],
            (stated.item, stated.root, stated.digest, stated.by, rows.micros(stated.at)),
        )
    except apsw.ConstraintError:
        raise DuplicateReceiptError(stated.item) from None


def _add_cached(connection: apsw.Connection, cached: Cached) -> None:
    _add_call(connection, "add_cached", (cached.call, cached.key, cached.receipt, rows.micros(cached.until)))


def _add_call(connection: apsw.Connection, query: str, values: tuple[str | int, ...]) -> None:
    """Write something about a call that is written once."""
    try:
        connection.execute(QUERIES[query], values)
    except apsw.ConstraintError:
        raise DuplicateReceiptError(str(values[0])) from None


def add_key(connection: apsw.Connection, key: Key) -> None:
    """Write a new key."""
    try:
        values = (key.id, key.role, key.public_key, key.relay, key.status, key.principal)
        connection.execute(QUERIES["add_key"], values)
    except apsw.ConstraintError:
        raise DuplicateReceiptError(key.id) from None


def _change_key(connection: apsw.Connection, changed: KeyChanged) -> None:
    if connection.execute(QUERIES["change_key"], (changed.status, changed.key)).fetchone() is None:
        raise NotFoundError("key", changed.key)


def _optional_micros(at: datetime | None) -> int | None:
    return None if at is None else rows.micros(at)
