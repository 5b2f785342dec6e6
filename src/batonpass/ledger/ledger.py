"""Recording: a draft gets its place in a stream and its signatures. It is durable when `append` returns."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from batonpass.clock import Clock
from batonpass.errors import FencedError, NotFoundError, RewoundError, StaleHeadError, StreamClosedError
from batonpass.ledger.acknowledged_head import Acknowledged
from batonpass.ledger.draft import Draft
from batonpass.model.base.checks import require_utc
from batonpass.model.base.ids import HANDOFF, RECEIPT, Digest, KeyId, PublicKey, ReceiptId, RelayId, StreamId, new_id
from batonpass.model.base.kinds import Mode
from batonpass.model.base.trusted import unchecked_maker
from batonpass.model.bodies.body import RunRekeyed
from batonpass.model.ledger.content import ContentRef
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.key import Signer
from batonpass.model.ledger.receipt import SIGNATURE_BYTES, Receipt, SignedReceipt
from batonpass.model.ledger.stream import Mark, Stream
from batonpass.signing.keys_elsewhere import ElsewhereSigner
from batonpass.store.port import LedgerStore
from batonpass.wire.canonical import digest
from batonpass.wire.receipt_codec import decode_receipt, encode_receipt, signing_bytes

# If another process writes first, somebody made progress. This many times in a row is a fault, not a race.
_TRIES: Final = 64
_TRIES_ELSEWHERE: Final = 8  # each asks somebody on another machine

# An act of a run has one to three streams. Each level of nesting is a frame, and those are limited.
_NESTED: Final = 16

_receipt: Final = unchecked_maker(Receipt)

_NO_CONTENT: Final[Mapping[str, ContentRef]] = {}
_HANDOFF: Final = f"{HANDOFF}_"


class Recorder(Protocol):
    """The relay that records: its id and its key."""

    @property
    def id(self) -> RelayId:
        """Return the relay's id."""

    @property
    def signer(self) -> Signer:
        """Return the relay's key."""


class StreamHead(Struct, frozen=True):
    """The part of a stream's state that its next receipt needs."""

    id: StreamId
    seq: int
    head: Digest
    epoch: int
    open: bool


_Prepared: TypeAlias = tuple[list[Entry], dict[StreamId, StreamHead]]


class _Slot:
    """The known head of a stream in this process, and the lock under which it appends to it."""

    __slots__ = ("head", "latest", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.head: StreamHead | None = None
        self.latest: datetime | None = None  # time of its last receipt


class Ledger:
    """Appends receipts to streams. Safe to use from many threads; streams never wait for each other."""

    def __init__(
        self, store: LedgerStore, recorder: Recorder, clock: Clock, acknowledged: Acknowledged | None = None
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._clock = clock
        self._acknowledged = acknowledged or Acknowledged(store)
        # Without a lock of its own: each step on it is one step of the interpreter. A slot is dropped only by whoever
        # holds its lock, and whoever gets that lock afterwards looks whether the slot is still the one in here.
        self._slots: dict[StreamId, _Slot] = {}

    @property
    def relay(self) -> RelayId:
        """Return the id of the relay that records here."""
        return self._recorder.id

    def append(self, *drafts: Draft) -> tuple[SignedReceipt, ...]:
        """Record drafts in one commit, or none of them. Return the signed receipts when they are durable.

        Raises the errors of `LedgerStore.append`. If a stream only has a newer head, the append is tried again.
        """
        return tuple([entry.signed for entry in self.append_entries(drafts)])

    def append_entries(self, drafts: Sequence[Draft]) -> Sequence[Entry]:
        """Do the same as `append`, and return each receipt with its changes."""
        if len(drafts) == 1:
            streams: tuple[StreamId, ...] = (drafts[0].stream,)
            elsewhere = type(drafts[0].cosigner) is ElsewhereSigner
        else:
            # Locks are taken in the order of the stream names, so that two threads cannot deadlock.
            streams = tuple(sorted({draft.stream for draft in drafts}))
            elsewhere = ElsewhereSigner in {type(draft.cosigner) for draft in drafts}
        if elsewhere:
            return self._append_signed_elsewhere(streams, drafts)
        written: Sequence[Entry]
        written = self._hold_many(streams, drafts) if len(streams) > _NESTED else self._hold(streams, drafts, {})
        return written

    def _append_signed_elsewhere(self, streams: Sequence[StreamId], drafts: Sequence[Draft]) -> Sequence[Entry]:
        """Append drafts whose second signature comes from another machine.

        No lock is held while we wait for it: others may write to the same streams meanwhile, and then the receipts are
        made and signed anew. The store compares the head in the commit, as always.
        """
        waiting = [replace(one, cosigner=_unsigned(one.cosigner)) for one in drafts]
        for _ in range(_TRIES_ELSEWHERE):
            prepared, heads = self._hold(streams, waiting, {}, self._prepare)
            entries = [_signed_by(draft.cosigner, entry) for draft, entry in zip(drafts, prepared, strict=True)]
            write = partial(self._append, prepared=(entries, heads))
            written: Sequence[Entry] = self._hold(streams, waiting, {}, write)
            if written:
                return written
        raise StaleHeadError(drafts[0].stream, 0)

    def _prepare(self, drafts: Sequence[Draft], slots: dict[StreamId, _Slot]) -> "_Prepared":
        return self._build(drafts, slots, self._acknowledged.latest())

    def _hold(
        self,
        streams: Sequence[StreamId],
        drafts: Sequence[Draft],
        held: dict[StreamId, _Slot],
        act: Callable[[Sequence[Draft], dict[StreamId, _Slot]], Any] | None = None,
    ) -> Any:  # noqa: ANN401 - what the act returns; the entries if there is none
        """Take the locks of the streams that are not held yet, one inside the other, and append the drafts."""
        stream = streams[len(held)]
        while True:
            slot = self._slots.get(stream) or self._slots.setdefault(stream, _Slot())
            # `with` on a lock of the interpreter is one step: no Ctrl-C can come between taking the lock and knowing
            # that it is ours. After a call of `acquire` it can, and then the close of the run would wait for ever.
            with slot.lock:
                if self._slots.get(stream) is not slot:
                    continue  # its last user dropped it while we waited
                held[stream] = slot
                if len(held) < len(streams):
                    return self._hold(streams, drafts, held, act)
                return self._append(drafts, held) if act is None else act(drafts, held)

    def _hold_many(self, streams: Sequence[StreamId], drafts: Sequence[Draft]) -> Sequence[Entry]:
        """Do the same for more streams than the interpreter can nest, as an import has."""
        held: dict[StreamId, _Slot] = {}
        # Each lock is held by a generator that stands within its `with`. All are listed before the first one begins,
        # and to forget the list is one step, so no Ctrl-C leaves a lock taken here either. Nothing else may refer to
        # them, not even the variable of a loop.
        holders = [self._hold_one(stream, held) for stream in streams]
        try:
            deque(map(next, holders), 0)
            return self._append(drafts, held)
        finally:
            holders.clear()

    def _hold_one(self, stream: StreamId, held: dict[StreamId, _Slot]) -> Iterator[None]:
        while True:
            slot = self._slots.get(stream) or self._slots.setdefault(stream, _Slot())
            with slot.lock:
                if self._slots.get(stream) is slot:
                    held[stream] = slot
                    yield
                    return

    def _append(
        self, drafts: Sequence[Draft], slots: dict[StreamId, _Slot], prepared: "_Prepared | None" = None
    ) -> Sequence[Entry]:
        """Append drafts to streams whose locks are held, and forget the slots that nobody will need.

        If they were prepared before and somebody else has written since, nothing is written or returned.
        """
        after = self._acknowledged.latest()
        try:
            for _ in range(_TRIES):
                entries, heads = prepared or self._build(drafts, slots, after)
                try:
                    self._store.append(entries)
                except StaleHeadError as stale:
                    self._catch_up(slots, drafts, stale)
                    if prepared is not None:
                        return ()
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
                    receipt = entry.signed.receipt
                    slots[receipt.stream].latest = receipt.at
                return entries
        finally:
            # A handoff's stream never closes, and any process may append to it. Its slot would stay forever, with a
            # head that is soon stale.
            for stream, slot in slots.items():
                if slot.head is None or not slot.head.open or stream.startswith(_HANDOFF):
                    self._slots.pop(stream, None)
        raise StaleHeadError(drafts[0].stream, 0)

    def _build(
        self,
        drafts: Sequence[Draft],
        slots: dict[StreamId, _Slot],
        after: Mark | None,
    ) -> "_Prepared":
        now = self._clock.now()
        heads: dict[StreamId, StreamHead] = {}
        entries: list[Entry] = []
        for draft in drafts:
            head = heads.get(draft.stream) or slots[draft.stream].head
            if not draft.new and (head is None or head.epoch < (draft.epoch or 0)):
                # The stream is unknown here, or it was taken over and the writer of this draft has taken it back. The
                # head that we remember is from an older epoch. If we kept it, the next write of somebody else would
                # look like a takeover.
                head = self._refresh(draft.stream, slots[draft.stream])
            if draft.after is not None and draft.after != (draft.anchor if head is None else head.head):
                raise StaleHeadError(draft.stream, 1 if head is None else head.seq + 1)
            # In an enforced run, time never goes back: if the clock is set back, a grant or a deadline that has ended
            # stays ended.
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
            receipt = signed.receipt
            heads[draft.stream] = StreamHead(
                draft.stream, receipt.seq, signed.digest, receipt.epoch, not entry.change.closes
            )
        return entries, heads

    def _refresh(self, stream: StreamId, slot: _Slot) -> StreamHead | None:
        """Return a stream's head from the store, and remember it with the time of that receipt."""
        with self._store.view() as view:
            try:
                found = view.get_stream(stream)
            except NotFoundError:
                slot.head = None
                return None
            slot.latest = decode_receipt(view.get_receipt_at(stream, found.seq).payload).at
        slot.head = StreamHead(found.id, found.seq, found.head, found.epoch, found.open)
        return slot.head

    def _holds(self, known: StreamHead) -> bool:
        """Return whether the store still has the receipt that was a stream's head when we last saw it."""
        with self._store.view() as view:
            return digest(view.get_receipt_at(known.id, known.seq).payload) == known.head

    def _catch_up(self, slots: dict[StreamId, _Slot], drafts: Sequence[Draft], stale: StaleHeadError) -> None:
        """Take a stream's new head.

        Raises `FencedError` if the stream was taken over, `RewoundError` if it lost receipts, and the given error if
        the stream should not exist yet. Taking the new head would hide all of these.
        """
        slot = slots.get(StreamId(stale.stream))
        if slot is None or any(draft.new and draft.stream == stale.stream for draft in drafts):
            raise stale
        known, found = slot.head, self._refresh(StreamId(stale.stream), slot)
        if known is None:
            return
        if found is None:
            raise RewoundError(stale.stream, known.seq, 0)
        # A newer head of the same epoch is only news. A newer epoch means that somebody else holds the stream now: if
        # we signed again on top of it, the fence would have no effect.
        if found.epoch != known.epoch:
            raise FencedError(stale.stream, known.epoch, found.epoch)
        if found.seq < known.seq or not self._holds(known):
            # We keep the head that was acknowledged. With the older one of the store, the next append would succeed and
            # hide the loss.
            slot.head = known
            raise RewoundError(stale.stream, known.seq, found.seq)


class _Unsigned(Struct, frozen=True):
    """Stands for a key that is elsewhere until it has signed."""

    key: KeyId
    public_key: PublicKey

    def sign(self, message: bytes) -> bytes:  # noqa: ARG002 - nothing is signed yet
        """Return a placeholder for a signature that is made later. It is never written."""
        return bytes(SIGNATURE_BYTES)


def _unsigned(cosigner: Signer | None) -> Signer | None:
    return _Unsigned(cosigner.key, cosigner.public_key) if isinstance(cosigner, ElsewhereSigner) else cosigner


def _signed_by(cosigner: Signer | None, entry: Entry) -> Entry:
    """Return an entry with the second signature, by a key that is elsewhere."""
    if not isinstance(cosigner, ElsewhereSigner):
        return entry
    signature = cosigner.sign_shown(signing_bytes(entry.signed.payload), entry.contents)
    return replace(entry, signed=replace(entry.signed, cosignature=signature))


def sign_receipt(draft: Draft, head: StreamHead | Stream | None, recorder: Recorder, at: datetime) -> SignedReceipt:
    """Return a draft as a signed receipt: the successor of the stream's head, or its first receipt.

    Raises `FencedError` if somebody took the stream over, and `NotFoundError` if there is neither a stream nor an
    anchor.
    """
    signer = recorder.signer
    # Sequence number, previous digest and epoch are decided here and not in the store, because they are signed. The
    # store compares them with its own state inside the commit.
    if head is None:
        if draft.anchor is None:
            raise NotFoundError("stream", draft.stream)
        seq, previous, epoch = 1, draft.anchor, 1
    else:
        if draft.epoch is not None and draft.epoch != head.epoch:
            raise FencedError(draft.stream, draft.epoch, head.epoch)
        seq, previous, epoch = head.seq + 1, head.head, head.epoch + isinstance(draft.body, RunRekeyed)
    # The fields of a draft were checked when it was made. Two things are new: the time, since anybody can supply a
    # clock, and whether the fields go together.
    receipt = _receipt(
        id=ReceiptId(new_id(RECEIPT, at)),
        stream=draft.stream,
        seq=seq,
        previous=previous,
        epoch=epoch,
        at=at if at.tzinfo is UTC else require_utc("at", at),
        mode=draft.mode,
        relay=recorder.id,
        relay_key=signer.key,
        cosigner=None if draft.cosigner is None else draft.cosigner.key,
        root=draft.root,
        session=draft.session,
        body=draft.body,
        content={content.name: content.ref for content in draft.contents} if draft.contents else _NO_CONTENT,
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
