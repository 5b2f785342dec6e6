"""The chain check: compares each receipt, in position order, with all before it. Pure; no I/O.

The steps are those of docs/spec/verification.md. Signatures are not checked here; they are returned with each receipt,
so that they can be checked on all cores.
"""

from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.audit.verification.carried_items import CarriedItems
from batonpass.audit.verification.reference_check import RULES, Facts, ReceiptMemory
from batonpass.audit.verification.ruling_check import DECISIONS, Signed, find_signed
from batonpass.errors import (
    BatonpassError,
    ChainError,
    EditedError,
    InvalidValueError,
    MissingError,
    NewerVersionError,
    PositionError,
    RevokedKeyError,
    SignatureError,
    UnknownKeyError,
    UnlinkedError,
    VerificationError,
)
from batonpass.model.base.ids import ContentId, Digest, HandoffId, PublicKey, ReceiptId, RunId
from batonpass.model.base.passkey import public_bytes
from batonpass.model.bodies.body import (
    AlarmRaised,
    CheckpointSaved,
    ContentErased,
    HandoffAccepted,
    HandoffAnswered,
    HandoffInitiated,
    HandoffRevised,
    RunRekeyed,
    RunStarted,
    SessionResumed,
    TokenAdded,
    ToolCompleted,
    ToolFailed,
    ToolRequested,
    UnknownBody,
    WebhookChanged,
)
from batonpass.model.ledger.key import KeyRole, KeyStatus
from batonpass.model.ledger.projection import Projection, enrols_itself, key_id, project, root_key
from batonpass.model.ledger.receipt import SIGNED_BY_ROOT, Receipt, StoredReceipt
from batonpass.model.ledger.ruling import Decided
from batonpass.model.ledger.stream import Stream, StreamKind, kind_of
from batonpass.store.derived_rows import Derived
from batonpass.store.port import LedgerInfo
from batonpass.wire.receipt_codec import decode_receipt

_NAMING_A_KEY: Final = (RunStarted, HandoffAccepted, RunRekeyed)
_CALLS: Final = (ToolRequested, ToolCompleted, ToolFailed)
_COLUMNS: Final = ("id", "stream", "seq", "kind")


class Link(Struct, frozen=True):
    """A receipt that passed the check, and its signatures, which are not checked yet."""

    receipt: Receipt
    digest: bytes
    signatures: tuple[tuple[bytes, bytes], ...]  # public key, signature
    rulings: tuple[Signed, ...] = ()  # the bytes that approvers signed, with their keys


class Linker:
    """Takes receipts in position order and refuses the first that does not fit. Raises `VerificationError`."""

    def __init__(self, info: LedgerInfo, *, gapless: bool = True, whole: bool = True) -> None:
        self.derived = Derived()
        self.unknown_kinds = 0
        self._info = info
        self._gapless = gapless
        self._position: int | None = 0
        self._memory = ReceiptMemory(whole=gapless and whole, items=CarriedItems(whole=gapless and whole))
        root = root_key(info.root_key)
        self._root = root.id
        self.derived.keys[root.id] = root
        self._know(info.root_key)

    @property
    def erased(self) -> dict[ContentId, ReceiptId]:
        """Return the erased contents, and the receipts that say so."""
        return self._memory.erased

    def add(self, stored: StoredReceipt) -> Link:
        """Check the next receipt and return it with its signatures."""
        receipt = _read(stored)
        raw = sha256(stored.payload).digest()
        digest = Digest(raw.hex())
        try:
            self._require_position(stored)
            change = project(receipt, digest)
            self._require_chain(receipt, change)
            self._require_recorder(receipt)
            signatures = self._signatures(stored, receipt)
            # Before the rows are updated: these rules ask for the state that the writer of the receipt found.
            self._require_links(receipt)
            rulings = self._rulings(receipt.body) if isinstance(receipt.body, DECISIONS) else ()
            self._fold(receipt, digest, change)
        except BatonpassError as error:
            raise _placed(error, stored) from None
        self._remember(receipt, raw, digest, change)
        return Link(receipt, raw, signatures, rulings)

    def pass_over(self, stored: StoredReceipt, run_key: PublicKey | None) -> None:
        """Take a sealed receipt without a full check: only its position is checked, and its run key is remembered."""
        try:
            self._require_position(stored)
        except VerificationError as error:
            raise _placed(error, stored) from None
        # A later receipt may try to enrol this key as an approver's, which no key of a run may become.
        if run_key is not None:
            self._know(run_key)

    # Step 3: positions count from 1 without gaps. A bundle is a selection, so there they only increase.
    def _require_position(self, stored: StoredReceipt) -> None:
        position = stored.position
        if position is None:
            # Committed but not sequenced yet. These come last, in the order of writing.
            self._position = None
            return
        if self._position is None or position <= self._position:
            raise PositionError(f"position {position} does not come after {self._position}", field="position")
        if self._gapless and position != self._position + 1:
            raise MissingError(f"there is no receipt at position {self._position + 1}; the next is at {position}")
        self._position = position

    # Step 4: next in its stream, with the digest of the receipt before it, in the right epoch, before the stream ends.
    def _require_chain(self, receipt: Receipt, change: Projection) -> None:
        stream = self.derived.streams.get(receipt.stream)
        if stream is None:
            if receipt.seq != 1:
                raise MissingError(f"the stream begins with receipt {receipt.seq}", seq=1)
            if receipt.epoch != 1:
                raise ChainError(f"the stream begins in epoch {receipt.epoch}", field="epoch")
            self._require_anchor(receipt)
            return
        _require_successor(receipt, stream, bumps=change.bumps)

    # Step 5: the anchor of a first receipt, and the tree that it belongs to.
    def _require_anchor(self, receipt: Receipt) -> None:
        if isinstance(receipt.body, RunStarted) or kind_of(receipt.stream) is StreamKind.RELAY:
            allowed = {self._info.genesis}
            root = receipt.body.run if isinstance(receipt.body, RunStarted) else None
        else:
            handoff = self.derived.handoffs.get(_handoff_of(receipt))
            if handoff is None:
                raise UnlinkedError("the handoff that it belongs to was never offered", field="handoff")
            # Only the latest receipt of the handoff. So no attempt can begin as if an answer, a revision or a failure
            # that was recorded before it had not been there.
            allowed = self._memory.anchors[handoff.id]
            root = handoff.root
        if receipt.previous not in allowed:
            raise UnlinkedError("it does not hang from where its stream must begin", field="previous")
        if receipt.root != root:
            raise UnlinkedError(f"it names {receipt.root} as the root of its tree, which is {root}", field="root")

    # Step 6: recorded by a relay whose key the root enrolled and which was active then.
    def _require_recorder(self, receipt: Receipt) -> None:
        if enrols_itself(receipt):
            self._know(receipt.body.public_key)  # type: ignore[union-attr]
            return
        key = self.derived.keys.get(receipt.relay_key)
        if key is None or key.role is not KeyRole.RELAY or key.relay != receipt.relay:
            raise UnknownKeyError(
                f"key {receipt.relay_key[:16]} was never enrolled for {receipt.relay}", field="recorder"
            )
        # By the order of receipts and never by their times, which a thief of the key chooses.
        if key.status is not KeyStatus.ACTIVE:
            raise RevokedKeyError(f"key {key.id[:16]} was {key.status} before this was recorded", field="recorder")

    # Step 7: exactly the signatures that the signed bytes name, by keys that may give them.
    def _signatures(self, stored: StoredReceipt, receipt: Receipt) -> tuple[tuple[bytes, bytes], ...]:
        known = self._memory.public_keys
        first = known[receipt.relay_key], stored.relay_signature
        cosigner, cosignature = receipt.cosigner, stored.cosignature
        # The signed bytes say whether there is a second signature. Otherwise somebody could take it away, and nobody
        # would miss it.
        if (cosigner is None) != (cosignature is None):
            raise SignatureError("the second signature is not the one that the receipt names", field="cosignature")
        if cosigner is None or cosignature is None:
            return (first,)
        public_key = self._cosigner(receipt)
        if public_key is None or key_id(public_key) != cosigner:
            raise UnknownKeyError(f"key {cosigner[:16]} may not sign this", field="cosigner")
        # A key id is the digest of the key, so the key stored under it is the same key.
        return first, (known.get(cosigner) or self._know(public_key), cosignature)

    # Step 7 for rulings: the bytes that the approver signed are rebuilt from earlier receipts.
    def _rulings(self, body: Decided) -> tuple[Signed, ...]:
        return find_signed(self._info.id, self._memory.holds, self.derived, body)

    def _cosigner(self, receipt: Receipt) -> PublicKey | None:
        body = receipt.body
        if isinstance(body, _CALLS):
            return self._memory.run_keys.get(body.run)
        if isinstance(body, _NAMING_A_KEY):
            return body.run_key
        if body.kind in SIGNED_BY_ROOT or (
            isinstance(body, UnknownBody) and kind_of(receipt.stream) is StreamKind.RELAY
        ):
            return self._info.root_key
        return self._memory.run_keys.get(RunId(receipt.stream))

    # Step 8: a receipt agrees with the receipts of the parents, children, calls and items that it names.
    def _require_links(self, receipt: Receipt) -> None:
        rule = RULES.get(type(receipt.body))
        if rule is not None:
            rule(Facts(self.derived, self._memory, receipt), receipt.body)
        self._memory.taints.require(receipt)

    # Step 9: the derived rows can be updated.
    def _fold(self, receipt: Receipt, digest: Digest, change: Projection) -> None:
        try:
            self.derived.fold(receipt, digest, change)
        except BatonpassError as error:
            raise UnlinkedError(f"it cannot follow what was recorded before: {error}") from None

    def _remember(self, receipt: Receipt, raw: bytes, digest: Digest, change: Projection) -> None:
        memory = self._memory
        memory.taints.remember(receipt)
        if isinstance(receipt.body, _CALLS):
            # Most receipts are of these kinds. They stand in the stream of their run and bring no items, holds or keys.
            memory.history.setdefault(receipt.stream, []).append(raw)
            memory.take_call(receipt.body)
            return
        kind = kind_of(receipt.stream)
        if kind is StreamKind.RUN:
            memory.history.setdefault(receipt.stream, []).append(raw)
        elif kind is StreamKind.HANDOFF:
            memory.anchors[HandoffId(receipt.stream)] = {digest}
        memory.items.remember(receipt, digest)
        memory.holds.remember(receipt, digest, self.derived)
        match receipt.body:
            case CheckpointSaved() as body:
                memory.checkpoints[receipt.id] = body.run
            case RunStarted() | HandoffAccepted() | RunRekeyed() as body:
                memory.run_keys[body.run] = body.run_key
            case HandoffInitiated() | HandoffAnswered() | HandoffRevised() | SessionResumed() as body:
                memory.take_baton(body, digest)
            case ContentErased() | TokenAdded() | WebhookChanged() | AlarmRaised() as body:
                memory.take_of_relay(body, receipt.id)
            case UnknownBody():
                self.unknown_kinds += 1
        if change.key_added is not None:
            self._know(change.key_added.public_key)

    def _know(self, public_key: PublicKey) -> bytes:
        raw = public_bytes(public_key)
        self._memory.public_keys[key_id(public_key)] = raw
        return raw


def _read(stored: StoredReceipt) -> Receipt:
    """Return the decoded receipt, if its columns agree with the signed bytes: steps 1 and 2."""
    try:
        receipt = decode_receipt(stored.payload)
    except NewerVersionError as error:
        raise NewerVersionError(error.problem, stream=stored.stream, seq=stored.seq, field=error.field) from None
    except (InvalidValueError, TypeError) as error:
        field_name = error.field if isinstance(error, InvalidValueError) else "payload"
        raise EditedError(
            f"the signed bytes cannot be read: {error}",
            stream=stored.stream,
            seq=stored.seq,
            field=field_name,
        ) from None
    if (
        receipt.id != stored.id
        or receipt.stream != stored.stream
        or receipt.seq != stored.seq
        or receipt.body.kind != stored.kind
    ):
        column = next(name for name in _COLUMNS if getattr(receipt, name) != getattr(stored, name))
        raise EditedError(
            f"the column says {getattr(stored, column)} and the signed bytes say {getattr(receipt, column)}",
            stream=receipt.stream,
            seq=receipt.seq,
            field=column,
        )
    return receipt


def _require_successor(receipt: Receipt, stream: Stream, *, bumps: bool) -> None:
    # The gap first: where a receipt is missing, `previous` differs as well, but only the gap says why.
    if receipt.seq > stream.seq + 1:
        raise MissingError(f"receipt {stream.seq + 1} is missing", seq=stream.seq + 1)
    if receipt.seq <= stream.seq:
        raise ChainError(f"receipt {receipt.seq} comes after receipt {stream.seq}", field="seq")
    if receipt.previous != stream.head:
        raise ChainError("it does not hang from the receipt before it", field="previous")
    if not stream.open:
        raise ChainError("it comes after the end of its stream", field="seq")
    if receipt.epoch != stream.epoch + bumps:
        raise ChainError(f"it is in epoch {receipt.epoch}, its stream in {stream.epoch}", field="epoch")
    if receipt.root != stream.root:
        raise UnlinkedError(f"it names {receipt.root} as the root of its tree, which is {stream.root}", field="root")


def _handoff_of(receipt: Receipt) -> HandoffId:
    if isinstance(receipt.body, HandoffAccepted):
        return receipt.body.handoff
    return HandoffId(receipt.stream)


def _placed(error: BatonpassError, stored: StoredReceipt) -> BatonpassError:
    """Return a finding with its stream and seq."""
    if not isinstance(error, VerificationError):
        return UnlinkedError(str(error), stream=stored.stream, seq=stored.seq)
    return type(error)(
        error.problem,
        stream=error.stream or stored.stream,
        seq=stored.seq if error.seq is None else error.seq,
        field=error.field,
    )
