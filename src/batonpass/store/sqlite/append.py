"""Writes entries inside a SQLite transaction: the compare-and-set, the receipt, its contents, and its projection."""

from collections.abc import Sequence
from typing import Final, NoReturn, TypeAlias

import apsw

from batonpass.errors import DuplicateReceiptError, NotFoundError, OfferedAlreadyError, UnknownRelayError
from batonpass.model.base.ids import KeyId, StreamId
from batonpass.model.base.lifecycle import Carrier, HandoffEvent, State, sources, target
from batonpass.model.bodies.body import ChildHead, RelayEnrolled
from batonpass.model.ledger.content import Content, Place
from batonpass.model.ledger.entry import Entry, Premise
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.projection import NOTHING, HandoffMoved, KeyChanged, Projection, enrols_itself
from batonpass.model.ledger.receipt import SignedReceipt
from batonpass.model.ledger.run import Cached, Handoff, Run, Stated
from batonpass.model.ledger.stream import Mark, Stream
from batonpass.store import rows
from batonpass.store.admission import (
    is_there,
    next_state,
    require_anchor,
    require_approver,
    require_fence,
    require_kept,
    require_next,
    require_premise,
    require_within,
)
from batonpass.store.sqlite import leases
from batonpass.store.sqlite.connection import Statements
from batonpass.store.sqlite.tail import LONGEST, QUERIES, Tail
from batonpass.wire.canonical import digest

LARGEST_ROW_BODY: Final = 64 * 1024

Row: TypeAlias = tuple[str | bytes | int | None, ...]

_MOVE_HANDOFF: Final = QUERIES["move_handoff"]
_MOVE_OF_CALLER: Final = QUERIES["move_handoff_of_caller"]
MOVES: Final = {
    event: {
        "caller_sources": f",{','.join(sources(event, Carrier.CALLER))},",
        "worker_sources": f",{','.join(sources(event, Carrier.WORKER))},",
        "caller_target": target(event, Carrier.CALLER),
        "worker_target": target(event, Carrier.WORKER),
    }
    for event in HandoffEvent
}
_IS_HEAD: Final = QUERIES["is_head"]
_MOVE: Final = QUERIES["move_stream"]
_OPEN: Final = QUERIES["open_stream"]
_ADD_RECEIPT: Final = QUERIES["add_receipt"]
_ADD_CONTENT: Final = QUERIES["add_content"]
_ADD_TOUCH: Final = QUERIES["add_touch"]
_ADD_RUN: Final = QUERIES["add_run"]
_END_RUN: Final = QUERIES["end_run"]
_ADD_HANDOFF: Final = QUERIES["add_handoff"]
_CHARGE: Final = QUERIES["charge"]
_COUNT_SAID: Final = QUERIES["count_said_in_tree"]
_HAS_STREAM: Final = QUERIES["has_stream"]
_GET_USED: Final = QUERIES["get_used"]
_ROW: Final = Place.ROW.value
_FILE: Final = Place.FILE.value


def write_entries(tail: Tail, entries: Sequence[Entry], connection: apsw.Connection) -> None:
    """Write entries of which all or none are to be kept.

    Raises the errors of `LedgerStore.append`; the caller rolls back.
    """
    # One cursor for all statements: a connection would make a new one for each.
    cursor = connection.cursor()
    try:
        if not tail.known:
            tail.catch_up(cursor)
        for entry in entries:
            _write_entry(connection, cursor, tail, entry)
        if len(tail.ids) >= LONGEST:
            tail.settle(cursor)
    except BaseException:
        # The caller may roll back to a savepoint, and SQLite reports only full rollbacks.
        tail.forget()
        raise
    finally:
        # A statement that was not read to its end would block the commit.
        cursor.close(force=True)


def _write_entry(connection: apsw.Connection, cursor: apsw.Cursor, tail: Tail, entry: Entry) -> None:
    change, signed, mark = entry.change, entry.signed, entry.after
    receipt = signed.receipt
    # A receipt that directly follows the mark becomes the head only if the mark is there: no check needed.
    if mark is not None and not ((receipt.stream == mark.stream and receipt.previous == mark.head) or tail.has(mark)):
        require_mark(cursor, mark)
    if not _take_head(connection, cursor, signed, change):
        return
    if entry.premise is not None:
        _require_premise(cursor, entry.premise)
    if not tail.add_receipt(cursor, signed):
        raise DuplicateReceiptError(receipt.id)
    cursor.execute(_ADD_RECEIPT, receipt_row(signed))
    if entry.contents or entry.touches:
        _add_contents(cursor, tail, connection.last_insert_rowid(), entry)
    if change is not NOTHING:
        _apply(connection, cursor, change, entry.token)
    for limit in entry.within:
        row = cursor.execute(_GET_USED, (limit.account, limit.unit)).fetchone()
        require_within(0 if row is None else rows.charged(row).used, limit)


def head_row(signed: SignedReceipt, change: Projection, *, itself: bool = False) -> Row:
    """Return the values with which a receipt becomes the head of its stream, for both statements that do it."""
    receipt = signed.receipt
    return (
        receipt.stream,
        receipt.seq,
        signed.digest,
        receipt.epoch,
        not change.closes,
        receipt.previous,
        receipt.epoch - change.bumps,
        itself,
        receipt.relay_key,
    )


def receipt_row(signed: SignedReceipt) -> Row:
    """Return the row of a receipt."""
    receipt = signed.receipt
    return (
        receipt.id,
        receipt.stream,
        receipt.seq,
        receipt.body.kind,
        signed.payload,
        signed.relay_signature,
        signed.cosignature,
    )


def content_row(content: Content, position: int) -> Row:
    """Return the row of a content. A body that is too large for a row is in a file of its own."""
    body = content.body
    in_row = len(body) <= LARGEST_ROW_BODY
    return (content.ref.id, position, _ROW if in_row else _FILE, content.salt, body if in_row else None)


def _add_contents(cursor: apsw.Cursor, tail: Tail, position: int, entry: Entry) -> None:
    for content in entry.contents:
        if not tail.add_content(cursor, content.ref.id):
            raise DuplicateReceiptError(entry.signed.receipt.id)
        cursor.execute(_ADD_CONTENT, content_row(content, position))
    if entry.touches:
        try:
            cursor.executemany(_ADD_TOUCH, [(touch.content, position, touch.path) for touch in entry.touches])
        except apsw.ConstraintError:
            raise DuplicateReceiptError(entry.signed.receipt.id) from None


def _take_head(connection: apsw.Connection, cursor: apsw.Cursor, signed: SignedReceipt, change: Projection) -> bool:
    """Make a receipt the head of its stream; return False if it is the head already. Raises why it cannot be."""
    # One statement compares and sets: seq, head, epoch, whether the stream is open, and whether the recording key is
    # active. Two writers that saw the same head cannot both succeed, and no read before the write can be out of date.
    # This is also the only place where an attempt that was taken over is fenced: its epoch is not the stream's any
    # more. The reason is looked up only after a refusal, in the same transaction, so it cannot have changed.
    receipt = signed.receipt
    itself = type(receipt.body) is RelayEnrolled and enrols_itself(receipt)
    values = head_row(signed, change, itself=itself)
    if receipt.seq == 1:
        cursor.execute(_OPEN, (*values, receipt.root))
    else:
        cursor.execute(_MOVE, values)
    if connection.changes():
        return True
    stream = _find_stream(cursor, receipt.stream)
    if is_there(stream, signed):
        return False
    if not itself:
        _require_active(cursor, receipt.relay_key)
    require_next(stream, signed, bumps=change.bumps)
    raise AssertionError("a receipt that fits its stream was refused")


def _require_premise(cursor: apsw.Cursor, premise: Premise) -> None:
    """Refuse an entry whose premise no longer holds. Raises `PremiseError`."""
    # Checked here, by the writing connection, which has these pages cached; a reading one must read them after each
    # commit.
    ((statements, refutations),) = cursor.execute(_COUNT_SAID, (premise.root,))
    touched = False
    for handoff in premise.untouched:
        touched = touched or cursor.execute(_HAS_STREAM, (handoff,)).fetchone() is not None
    require_premise(premise, statements, refutations, touched=touched)


def require_mark(connection: Statements, mark: Mark) -> None:
    """Refuse to write into a store that lost the acknowledged receipt `mark`. Raises `RewoundError`."""
    if connection.execute(_IS_HEAD, (mark.stream, mark.seq, mark.head)).fetchone() is not None:
        return
    row = connection.execute(QUERIES["get_receipt_at"], (mark.stream, mark.seq)).fetchone()
    then = None if row is None else digest(rows.receipt(row).payload)
    require_kept(mark, _find_stream(connection, mark.stream), then)


def _find_stream(connection: Statements, stream: StreamId) -> Stream | None:
    row = connection.execute(QUERIES["get_stream"], (stream,)).fetchone()
    return None if row is None else rows.stream(row)


def _find_key(connection: Statements, key: KeyId) -> Key | None:
    row = connection.execute(QUERIES["get_key"], (key,)).fetchone()
    return None if row is None else rows.key(row)


def _require_active(connection: Statements, relay_key: KeyId) -> None:
    key = _find_key(connection, relay_key)
    if key is None or key.role is not KeyRole.RELAY or key.status is not KeyStatus.ACTIVE:
        raise UnknownRelayError(relay_key, enrolled=key is not None)


def _apply(connection: apsw.Connection, cursor: apsw.Cursor, change: Projection, token: int | None) -> None:
    if change.fences is not None:
        _fence(cursor, change.fences)
    if change.run_opened is not None:
        cursor.execute(_ADD_RUN, run_row(change.run_opened))
    if (ended := change.run_ended) is not None:
        cursor.execute(_END_RUN, (ended.state, rows.micros(ended.at), ended.run))
    if change.handoff_opened is not None:
        _add_handoff(cursor, change.handoff_opened)
    if change.handoff_moved is not None:
        _move_handoff(connection, cursor, change.handoff_moved, token)
    for stated in change.stated:
        _add_statement(cursor, stated)
    if change.charges or change.remarks or change.cached or change.call_held or change.call_decided:
        _apply_to_calls(cursor, change)
    if change.proven_by or change.key_added or change.key_changed:
        _apply_to_keys(cursor, change)
    for content in change.erased:
        cursor.execute(QUERIES["erase_content"], (content,))
        cursor.execute(QUERIES["erase_touch"], (content,))


def _apply_to_calls(connection: Statements, change: Projection) -> None:
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


def _apply_to_keys(connection: Statements, change: Projection) -> None:
    if change.proven_by is not None:
        require_approver(_find_key(connection, change.proven_by), change.proven_by)
    if change.key_added is not None:
        add_key(connection, change.key_added)
    if change.key_changed is not None:
        _change_key(connection, change.key_changed)


def _fence(connection: Statements, at: ChildHead) -> None:
    # A relay that ends somebody else's run names the run's head. If the run has written more since, those receipts
    # would belong to nobody. So this fails, the relay reads the new head and tries again with all of the run in view.
    values = {"run": at.run, "seq": at.seq, "head": at.head}
    if connection.execute(QUERIES["fence_stream"], values).fetchone() is None:
        require_fence(_find_stream(connection, StreamId(at.run)), at)


def run_row(run: Run) -> Row:
    """Return the row of a run."""
    return (
        run.id,
        run.root,
        run.parent,
        run.handoff,
        run.attempt,
        run.agent,
        run.principal,
        run.state,
        rows.micros(run.started_at),
        None if run.ended_at is None else rows.micros(run.ended_at),
        run.series,
        run.session,
    )


def handoff_row(handoff: Handoff) -> Row:
    """Return the row of a handoff."""
    return (
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
        None if handoff.deadline is None else rows.micros(handoff.deadline),
    )


def _add_handoff(connection: Statements, handoff: Handoff) -> None:
    try:
        connection.execute(_ADD_HANDOFF, handoff_row(handoff))
    except apsw.ConstraintError:
        _refuse_handoff(connection, handoff)
    if handoff.carrier is Carrier.WORKER and handoff.state is State.READY:
        leases.follow(connection, handoff.id, handoff.state, handoff.to)


def _refuse_handoff(connection: Statements, handoff: Handoff) -> NoReturn:
    row = connection.execute(QUERIES["get_offer"], (handoff.scope, handoff.key)).fetchone()
    if row is not None and row[0] != handoff.id:
        raise OfferedAlreadyError(row[0])
    raise DuplicateReceiptError(handoff.id)


def move_row(moved: HandoffMoved) -> Row:
    """Return the values with which an event moves a handoff, for each statement that does it."""
    accepts = moved.event is HandoffEvent.ACCEPT
    step = MOVES[moved.event]
    return (
        moved.handoff,
        moved.to,
        step["caller_target"],
        step["worker_target"],
        moved.attempt if accepts else None,
        moved.run,
        moved.attempt if moved.attempt is None else moved.attempt - accepts,
        moved.ends,
        moved.anchor,
        step["caller_sources"],
        step["worker_sources"],
    )


def _move_handoff(connection: apsw.Connection, cursor: apsw.Cursor, moved: HandoffMoved, token: int | None) -> None:
    values = move_row(moved)
    # Most handoffs are carried by their caller. Then nothing has to be read back, and that takes as long as the rest.
    if token is None:
        cursor.execute(_MOVE_OF_CALLER, values[:-1])
        if connection.changes():
            return
    row = cursor.execute(_MOVE_HANDOFF, values).fetchone()
    if row is None:
        _refuse_move(cursor, moved)
    carrier, state, agent = row
    # After the move and in the same transaction: a lost lease undoes the move. A token is drawn anew by every claim, so
    # an old one shows that somebody else has claimed the handoff since.
    if token is not None:
        leases.require_lease(cursor, moved.handoff, token)
    if carrier == Carrier.WORKER:
        leases.follow(cursor, moved.handoff, state, agent)


def _refuse_move(connection: Statements, moved: HandoffMoved) -> NoReturn:
    row = connection.execute(QUERIES["get_handoff_row"], (moved.handoff,)).fetchone()
    if row is None:
        raise NotFoundError("handoff", moved.handoff)
    handoff = rows.handoff(row)
    next_state(handoff, moved)
    require_anchor(handoff, _find_stream(connection, StreamId(handoff.id)), moved)
    raise AssertionError("a step that the table allows was refused")


def _add_statement(connection: Statements, stated: Stated) -> None:
    try:
        connection.execute(
            QUERIES["add_statement"],
            (stated.item, stated.root, stated.digest, stated.by, rows.micros(stated.at)),
        )
    except apsw.ConstraintError:
        raise DuplicateReceiptError(stated.item) from None


def _add_cached(connection: Statements, cached: Cached) -> None:
    _add_call(connection, "add_cached", (cached.call, cached.key, cached.receipt, rows.micros(cached.until)))


def _add_call(connection: Statements, query: str, values: tuple[str | int, ...]) -> None:
    """Insert a row about a call that may exist only once. Raises `DuplicateReceiptError`."""
    try:
        connection.execute(QUERIES[query], values)
    except apsw.ConstraintError:
        raise DuplicateReceiptError(str(values[0])) from None


def add_key(connection: Statements, key: Key) -> None:
    """Insert a new key. Raises `DuplicateReceiptError`."""
    try:
        values = (key.id, key.role, key.public_key, key.relay, key.status, key.principal)
        connection.execute(QUERIES["add_key"], values)
    except apsw.ConstraintError:
        raise DuplicateReceiptError(key.id) from None


def _change_key(connection: Statements, changed: KeyChanged) -> None:
    if connection.execute(QUERIES["change_key"], (changed.status, changed.key)).fetchone() is None:
        raise NotFoundError("key", changed.key)
