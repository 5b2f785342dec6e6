"""Derives streams, runs, handoffs and keys from receipts, one receipt after the other.

The memory store keeps its tables this way. The verifier does the same, and compares the result with the tables of every
other store.
"""

from collections.abc import Mapping, MutableMapping
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.errors import DuplicateReceiptError, NotFoundError, OfferedAlreadyError
from batonpass.model.base.checks import require_digest
from batonpass.model.base.ids import CallId, ContentId, Digest, HandoffId, KeyId, RunId, StreamId
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import ChildHead
from batonpass.model.grants.charge import Charge, Charged, name_of
from batonpass.model.ledger.key import Key, KeyRole, KeyStatus
from batonpass.model.ledger.projection import NOTHING, HandoffMoved, KeyChanged, Projection, RunEnded
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.remark import Remark
from batonpass.model.ledger.run import Cached, DecidedCall, Handoff, HeldCall, Run, Stated
from batonpass.model.ledger.stream import Stream
from batonpass.store.admission import next_state, require_anchor, require_approver, require_fence

Name = TypeVar("Name")
Row = TypeVar("Row")

_stream: Final = unchecked_maker(Stream)


class Derived(Struct):
    """The rows that are derived from receipts, by id."""

    streams: MutableMapping[StreamId, Stream] = field(default_factory=dict)
    runs: MutableMapping[RunId, Run] = field(default_factory=dict)
    handoffs: MutableMapping[HandoffId, Handoff] = field(default_factory=dict)
    keys: MutableMapping[KeyId, Key] = field(default_factory=dict)
    stated: MutableMapping[ContentId, Stated] = field(default_factory=dict)
    offers: MutableMapping[tuple[StreamId, Digest], HandoffId] = field(default_factory=dict)  # by scope and key
    cached: MutableMapping[CallId, Cached] = field(default_factory=dict)
    charged: MutableMapping[str, Charged] = field(default_factory=dict)
    held_calls: MutableMapping[CallId, HeldCall] = field(default_factory=dict)
    decided_calls: MutableMapping[CallId, DecidedCall] = field(default_factory=dict)
    remarks: MutableMapping[str, Remark] = field(default_factory=dict)

    def fold(self, receipt: Receipt, digest: Digest, change: Projection) -> None:
        """Apply one receipt, which the caller has found to be the next of its stream.

        Raises the errors of `LedgerStore.append`.
        """
        require_digest("head", digest)  # all other values are parts of the receipt, which has checked them
        self.streams[receipt.stream] = _stream(
            id=receipt.stream,
            root=receipt.root,
            seq=receipt.seq,
            head=digest,
            epoch=receipt.epoch,
            open=not change.closes,
        )
        if change is NOTHING:
            return  # most receipts of calls change only their own stream
        if change.fences is not None:
            self._fence(change.fences)
        if change.run_opened is not None:
            add_new(self.runs, change.run_opened.id, change.run_opened)
        if change.run_ended is not None:
            self._end(change.run_ended)
        if change.handoff_opened is not None:
            self._open(change.handoff_opened)
        if change.handoff_moved is not None:
            self._move(change.handoff_moved)
        self._fold_keys(change)
        self._add(change)

    def _add(self, change: Projection) -> None:
        for statement in change.stated:
            add_new(self.stated, statement.item, statement)
        if change.cached is not None:
            add_new(self.cached, change.cached.call, change.cached)
        for charge in change.charges:
            self._charge(charge)
        if change.call_held is not None:
            add_new(self.held_calls, change.call_held.call, change.call_held)
        if change.call_decided is not None:
            add_new(self.decided_calls, change.call_decided.call, change.call_decided)
        for remark in change.remarks:
            add_new(self.remarks, remark.id, remark)

    def _fold_keys(self, change: Projection) -> None:
        if change.proven_by is not None:
            require_approver(self.keys.get(change.proven_by), change.proven_by)
        if change.key_added is not None:
            self._add_key(change.key_added)
        if change.key_changed is not None:
            self._change(change.key_changed)

    def _add_key(self, key: Key) -> None:
        if key.role is KeyRole.APPROVER and any(
            known.principal == key.principal and known.status is KeyStatus.ACTIVE for known in self.keys.values()
        ):
            raise DuplicateReceiptError(str(key.principal))
        add_new(self.keys, key.id, key)

    def _fence(self, at: ChildHead) -> None:
        stream = self.streams.get(StreamId(at.run))
        require_fence(stream, at)
        self.streams[StreamId(at.run)] = replace(get_row(self.streams, StreamId(at.run), "stream"), open=False)

    def _open(self, handoff: Handoff) -> None:
        if handoff.scope is not None and handoff.key is not None:
            taken = self.offers.setdefault((handoff.scope, handoff.key), handoff.id)
            if taken != handoff.id:
                raise OfferedAlreadyError(taken)
        add_new(self.handoffs, handoff.id, handoff)

    def _end(self, ended: RunEnded) -> None:
        run = get_row(self.runs, ended.run, "run")
        self.runs[ended.run] = replace(run, state=ended.state, ended_at=ended.at)

    def _move(self, moved: HandoffMoved) -> None:
        handoff = get_row(self.handoffs, moved.handoff, "handoff")
        require_anchor(handoff, self.streams.get(StreamId(handoff.id)), moved)
        handoff = replace(handoff, state=next_state(handoff, moved))
        if moved.run is not None and moved.attempt is not None:
            handoff = replace(handoff, attempt=moved.attempt, run=moved.run)
        if moved.to is not None:
            handoff = replace(handoff, to=moved.to)
        self.handoffs[handoff.id] = handoff

    def _charge(self, charge: Charge) -> None:
        name = name_of(charge.account, charge.unit)
        before = self.charged[name].used if name in self.charged else 0
        self.charged[name] = Charged(account=charge.account, unit=charge.unit, used=before + charge.amount)

    def _change(self, changed: KeyChanged) -> None:
        key = get_row(self.keys, changed.key, "key")
        self.keys[key.id] = replace(key, status=changed.status)


def get_row(table: Mapping[Name, Row], name: Name, what: str) -> Row:
    """Return the row with this name. Raises `NotFoundError`."""
    try:
        return table[name]
    except KeyError:
        raise NotFoundError(what, str(name)) from None


def add_new(table: MutableMapping[Name, Row], name: Name, row: Row) -> None:
    """Add a row. Raises `DuplicateReceiptError` if its name is taken."""
    if name in table:
        raise DuplicateReceiptError(str(name))
    table[name] = row
