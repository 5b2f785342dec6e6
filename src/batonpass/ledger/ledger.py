"""Recording: a draft gets its place in its stream, its signatures, and is durable when `append` returns."""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

from batonpass.clock import Clock
from batonpass.errors import FencedError, NotFoundError, RewoundError, StaleHeadError, StreamClosedError
from batonpass.ledger.acknowledged import Acknowledged
from batonpass.ledger.draft import Draft
from batonpass.model.base.checks import require_utc
from batonpass.model.base.ids import Digest, RelayId, StreamId, new_receipt_id
from batonpass.model.base.kinds import Mode
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import RunRekeyed
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.receipt import Receipt, SignedReceipt
from batonpass.model.ledger.stream import Mark, Stream, StreamKind, kind_of
from batonpass.store.port import LedgerStore
from batonpass.wire.canonical import digest
from batonpass.wire.codec import decode_receipt, encode_receipt, signing_bytes

# Each time another process came first, somebody made progress; this many times in a row is a fault, not a race.
_TRIES: Final = 64

_receipt: Final = unchecked_maker(Receipt)
_stream: Final = unchecked_maker(Stream)


class Recorder(Protocol):
    """Who records: the relay's id, and its key."""

    @property
    def id(self) -> RelayId:
        """Return the relay's id."""

    @property
    def signer(self) -> Signer:
        """Return the relay's key."""


class _Slot:
    """What this process knows of a stream, and the lock under which it appends to it."""

    __slots__ = ("head", "latest", "lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.head: Stream | None = None
        self.latest: datetime | None = None  # when its last receipt was recorded, as that says
        self.users = 0


class Ledger:
    """Appends receipts to streams. Safe to use from many threads; streams never wait for each other."""

    def __init__(
        self, store: LedgerStore, recorder: Recorder, clock: Clock, acknowledged: Acknowledged | None = None
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._acknowledged = acknowledged or Acknowledged(store)
        self._slots: dict[StreamId, _Slot] = {}
        self._slots_lock = threading.Lock()

    @property
    def relay(self) -> RelayId:
        """Return who records here."""
        return self._recorder.id

    def append(self, *drafts: Draft) -> tuple[SignedReceipt, ...]:
        """Record drafts in one commit, or none of them; return them signed, when they are durable.

        Raises what `LedgerStore.append` raises, except that a stream which merely moved on is caught up with.
        """
        slots: dict[StreamId, _Slot] = {}
        try:
            # In the order of their names, so that no two threads wait for each other.
            for stream in (drafts[0].stream,) if len(drafts) == 1 else sorted({draft.stream for draft in drafts}):
                slots[stream] = self._take(stream)
            return self._append(drafts, slots)
        finally:
            for stream, slot in slots.items():
                self._give_back(stream, slot)

    def _append(self, drafts: Sequence[Draft], slots: dict[StreamId, _Slot]) -> tuple[SignedReceipt, ...]:
        after = self._acknowledged.latest()
        for _ in range(_TRIES):
            entries, heads = self._build(drafts, slots, after)
            try:
                self._store.append(entries)
            except StaleHeadError as stale:
                self._catch_up(slots, drafts, stale)
                continue
            except (FencedError, StreamClosedError) as over:
                slots[StreamId(over.stream)].head = None
                raise
            except RewoundError as rewound:
                raise self._acknowledged.explained(rewound) from None
            self._acknowledged.take(entries[-1].signed)
            for stream, head in heads.items():
                slots[stream].head = head
            for entry in entries:
                slots[entry.signed.receipt.stream].latest = entry.signed.receipt.at
            return tuple([entry.signed for entry in entries])
        raise StaleHeadError(drafts[0].stream, 0)

    def _take(self, stream: StreamId) -> _Slot:
        """Lock a stream for this thread."""
        with self._slots_lock:
            slot = self._slots.get(stream)
            if slot is None:
                slot = self._slots[stream] = _Slot()
            slot.users += 1
        slot.lock.acquire()
        return slot

    def _give_back(self, stream: StreamId, slot: _Slot) -> None:
        slot.lock.release()
        with self._slots_lock:
            slot.users -= 1
            if slot.users == 0 and not _worth_keeping(stream, slot.head):
                self._slots.pop(stream, None)

    def _build(
        self,
        drafts: Sequence[Draft],
        slots: dict[StreamId, _Slot],
        after: Mark | None,
    ) -> tuple[list[Entry], dict[StreamId, Stream]]:
        now = self._clock.now()
        heads: dict[StreamId, Stream] = {}
        entries: list[Entry] = []
        for draft in drafts:
            head = heads.get(draft.stream) or slots[draft.stream].head
            if not draft.new and (head is None or head.epoch < (draft.epoch or 0)):
                # Unknown here, or taken over since and now taken back by whoever wrote this draft. What we knew of it
                # is of the past: kept, it would look like a takeover as soon as somebody else writes.
                head = self._refresh(draft.stream, slots[draft.stream])
            if draft.after not in {None, draft.anchor if head is None else head.head}:
                raise StaleHeadError(draft.stream, 1 if head is None else head.seq + 1)
            # In a run that is held to something, a clock that was set back does not bring back what had ended.
            known = slots[draft.stream].latest if draft.mode is Mode.ENFORCED else None
            signed = sign_receipt(draft, head, self._recorder, max(now, known or now))
            entry = Entry(
                signed=signed,
                contents=draft.contents,
                touches=draft.touches,
                within=draft.within,
                token=draft.token,
                premise=draft.premise,
                after=None if entries else after,
            )
            entries.append(entry)
            heads[draft.stream] = _stream(
                id=draft.stream,
                root=draft.root,
                seq=signed.receipt.seq,
                head=signed.digest,
                epoch=signed.receipt.epoch,
                open=not entry.change.closes,
            )
        return entries, heads

    def _refresh(self, stream: StreamId, slot: _Slot) -> Stream | None:
        """Return where a stream stands in the store, and remember that and when it got there."""
        with self._store.view() as view:
            try:
                slot.head = view.get_stream(stream)
            except NotFoundError:
                slot.head = None
                return None
            slot.latest = decode_receipt(view.get_receipt_at(stream, slot.head.seq).payload).at
        return slot.head

    def _holds(self, known: Stream) -> bool:
        """Return whether the store still has the receipt that was a stream's head when we last saw it."""
        with self._store.view() as view:
            return digest(view.get_receipt_at(known.id, known.seq).payload) == known.head

    def _catch_up(self, slots: dict[StreamId, _Slot], drafts: Sequence[Draft], stale: StaleHeadError) -> None:
        """Take a stream's new head, unless that would hide a takeover, a rewind, or a stream that began without us."""
        slot = slots.get(StreamId(stale.stream))
        if slot is None or any(draft.new and draft.stream == stale.stream for draft in drafts):
            raise stale
        known, found = slot.head, self._refresh(StreamId(stale.stream), slot)
        if known is None:
            return
        if found is None:
            raise RewoundError(stale.stream, known.seq, 0)
        if found.epoch != known.epoch:
            raise FencedError(stale.stream, known.epoch, found.epoch)
        if found.seq < known.seq or not self._holds(known):
            slot.head = known
            raise RewoundError(stale.stream, known.seq, found.seq)


def sign_receipt(draft: Draft, head: Stream | None, recorder: Recorder, at: datetime) -> SignedReceipt:
    """Return a draft as the signed successor of a stream's head, or as its first receipt."""
    signer = recorder.signer
    # What a draft holds was checked when it was made; only the clock is somebody else's, and what goes together is new.
    receipt = _receipt(
        id=new_receipt_id(at),
        stream=draft.stream,
        seq=1 if head is None else head.seq + 1,
        previous=_anchor(draft) if head is None else head.head,
        epoch=1 if head is None else _epoch(draft, head),
        at=require_utc("at", at),
        mode=draft.mode,
        relay=recorder.id,
        relay_key=signer.key,
        cosigner=None if draft.cosigner is None else draft.cosigner.key,
        root=draft.root,
        session=draft.session,
        body=draft.body,
        content={content.name: content.ref for content in draft.contents},
    )
    receipt.require_consistent()
    payload = encode_receipt(receipt)
    message = signing_bytes(payload)
    return SignedReceipt(
        receipt=receipt,
        payload=payload,
        digest=digest(payload),
        relay_signature=signer.sign(message),
        cosignature=None if draft.cosigner is None else draft.cosigner.sign(message),
    )


def _worth_keeping(stream: StreamId, head: Stream | None) -> bool:
    # Anybody may append to a handoff's stream and it never closes: a head kept for it would be stale, and forever.
    return head is not None and head.open and kind_of(stream) is not StreamKind.HANDOFF


def _anchor(draft: Draft) -> Digest:
    if draft.anchor is None:
        raise NotFoundError("stream", draft.stream)
    return draft.anchor


def _epoch(draft: Draft, head: Stream) -> int:
    if draft.epoch is not None and draft.epoch != head.epoch:
        raise FencedError(draft.stream, draft.epoch, head.epoch)
    return head.epoch + isinstance(draft.body, RunRekeyed)
