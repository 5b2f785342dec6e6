"""A receipt: one signed record of one thing that happened, chained to the one before it."""

from collections.abc import Mapping
from datetime import datetime
from types import NoneType
from typing import Final, Self, get_args

from msgspec import Struct

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import (
    LARGEST_INTEGER,
    require_code,
    require_digest,
    require_instance,
    require_integer,
    require_member,
    require_utc,
    shorten,
)
from batonpass.model.base.ids import (
    RECEIPT,
    RELAY,
    RUN,
    SESSION,
    Digest,
    KeyId,
    ReceiptId,
    RelayId,
    RunId,
    SessionId,
    StreamId,
    require_id,
    require_stream,
)
from batonpass.model.base.kinds import Mode
from batonpass.model.bodies.body import (
    AlarmAcknowledged,
    AlarmCleared,
    AlarmRaised,
    ApproverEnrolled,
    ApproverRevoked,
    Body,
    ContentErased,
    FileEndorsed,
    FindingAcknowledged,
    GrantRevoked,
    Kind,
    RelayEnrolled,
    RelayRevoked,
    RelayRotated,
    RunTainted,
    SessionPruned,
    TokenAdded,
    TokenRevoked,
    ToolApproved,
    ToolBacked,
    ToolRefused,
    UnknownBody,
    WebhookChanged,
)
from batonpass.model.bodies.handoff_bodies import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffContextSanitized,
    HandoffFailed,
    HandoffInitiated,
)
from batonpass.model.ledger.content import ContentRef

SIGNATURE_BYTES: Final = 64
_BODY_TYPES: Final = frozenset(get_args(Body))
_KNOWN_AT_MOST: Final = 10_000
_KNOWN_CONSTANTS: Final[set[tuple[str | None, ...]]] = set()
_EXACT: Final = frozenset({str, NoneType})

# These kinds have a second signature: by the run's own key, or, about relays and approvers, by the root key.
SIGNED_BY_RUN: Final = frozenset(
    {
        Kind.RUN_STARTED,
        Kind.RUN_REKEYED,
        Kind.RUN_RECORDED,
        Kind.RUN_RELAXED,
        Kind.RUN_SETTLED,
        Kind.RUN_ACKNOWLEDGED,
        Kind.RUN_TAINTED,
        Kind.RUN_ENDORSED,
        Kind.RUN_GAP,
        Kind.RUN_SPENT,
        Kind.RUN_SUSPENDED,
        Kind.RUN_CLOSED,
        Kind.CHECKPOINT_SAVED,
        Kind.HANDOFF_ACCEPTED,
        Kind.HANDOFF_COMPLETED,
        Kind.HANDOFF_FAILED,
        Kind.TOOL_REQUESTED,
        Kind.TOOL_COMPLETED,
        Kind.TOOL_FAILED,
        Kind.TOOL_DENIED,
        Kind.TOOL_CACHED,
        Kind.SESSION_SAVED,
        Kind.SESSION_RESUMED,
        Kind.TOOL_HELD,
    },
)
SIGNED_BY_ROOT: Final = frozenset(
    {
        Kind.RELAY_ENROLLED,
        Kind.RELAY_ROTATED,
        Kind.RELAY_REVOKED,
        Kind.APPROVER_ENROLLED,
        Kind.APPROVER_REVOKED,
    },
)

# The stream of a receipt: `_OF_RELAY` is in the relay's own stream, `_OF_RUN` in the run's although it names a handoff.
# Any other kind that names a handoff is in the handoff's stream, and the rest is in the run's.
_OF_RELAY: Final = frozenset(
    {
        RelayEnrolled,
        RelayRotated,
        RelayRevoked,
        ContentErased,
        GrantRevoked,
        FileEndorsed,
        FindingAcknowledged,
        AlarmRaised,
        AlarmAcknowledged,
        AlarmCleared,
        SessionPruned,
        ApproverEnrolled,
        ApproverRevoked,
        TokenAdded,
        TokenRevoked,
        WebhookChanged,
        ToolBacked,
        ToolApproved,
        ToolRefused,
    },
)
_OF_RUN: Final = frozenset(
    {RunTainted, HandoffInitiated, HandoffContextSanitized, HandoffAccepted, HandoffCompleted, HandoffFailed},
)


class Receipt(Struct, frozen=True, kw_only=True):
    """The fields of one record, as its signed bytes have them."""

    id: ReceiptId
    stream: StreamId
    seq: int  # number in its stream, from 1
    previous: Digest  # digest of the receipt before it; for the first of a stream, its anchor
    epoch: int  # rises when a run gets a new key: writers of an older epoch are fenced
    at: datetime
    mode: Mode
    relay: RelayId  # the relay that recorded it
    relay_key: KeyId
    cosigner: KeyId | None  # the second key that must have signed
    root: RunId | None  # the tree it belongs to; None in a relay's own stream
    session: SessionId | None
    body: Body
    content: Mapping[str, ContentRef]  # by name

    def __post_init__(self) -> None:
        self.require_consistent()
        require_id("id", self.id, RECEIPT)
        if not type(self.seq) is type(self.epoch) is int or not 0 < self.epoch <= self.seq <= LARGEST_INTEGER:
            require_integer("seq", self.seq, least=1)
            require_integer("epoch", self.epoch, least=1)
        require_digest("previous", self.previous)
        require_utc("at", self.at)
        if type(self.mode) is not Mode:
            require_member("mode", self.mode, Mode)
        self._require_constants()
        for name, ref in require_instance("content", self.content, dict).items():
            require_code("content", name)
            if type(ref) is not ContentRef:
                require_instance("content", ref, ContentRef)

    def _require_constants(self) -> None:
        """Check the fields that all receipts of a stream share. Good combinations are remembered."""
        texts = (self.stream, self.relay, self.relay_key, self.cosigner, self.root, self.session)
        # No subclass of `str`: it can define `__eq__` and `__hash__` so that it passes for a known text.
        exact = _EXACT.issuperset(map(type, texts))
        if exact and texts in _KNOWN_CONSTANTS:
            return
        require_stream("stream", self.stream)
        require_id("relay", self.relay, RELAY)
        require_digest("relay_key", self.relay_key)
        if self.cosigner is not None:
            require_digest("cosigner", self.cosigner)
        if self.root is not None:
            require_id("root", self.root, RUN)
        if self.session is not None:
            require_id("session", self.session, SESSION)
        if len(_KNOWN_CONSTANTS) >= _KNOWN_AT_MOST:
            _KNOWN_CONSTANTS.clear()
        if exact:
            _KNOWN_CONSTANTS.add(texts)

    def require_consistent(self) -> None:
        """Refuse fields that are valid one by one but not together. Raises `InvalidValueError`."""
        body = self.body
        if type(body) not in _BODY_TYPES:
            raise InvalidValueError("body", f"{shorten(body)} is not the body of a receipt")
        if self.cosigner is None and (body.kind in SIGNED_BY_RUN or body.kind in SIGNED_BY_ROOT):
            raise InvalidValueError("cosigner", f"{body.kind} needs a second signature")
        if type(body) is UnknownBody:
            return  # only a newer version knows which stream it belongs to
        if type(body) in _OF_RELAY:
            home: str | None = self.relay
        else:
            handoff = None if type(body) in _OF_RUN else getattr(body, "handoff", None)
            home = handoff or getattr(body, "run", None)
        if home != self.stream:
            raise InvalidValueError("stream", f"a {body.kind} receipt of {home} cannot stand in {self.stream}")

    @property
    def kind(self) -> str:
        """Return the kind. It may be one that this version does not know."""
        return self.body.kind


class SignedReceipt(Struct, frozen=True, kw_only=True):
    """A receipt with the exact bytes that were signed, and the signatures."""

    receipt: Receipt
    payload: bytes
    digest: Digest
    relay_signature: bytes
    cosignature: bytes | None


class StoredReceipt(Struct, frozen=True, kw_only=True):
    """A receipt as a store has it: the signed bytes, and columns that repeat some of their fields."""

    position: int | None  # None until it is sequenced
    id: ReceiptId
    stream: StreamId
    seq: int
    kind: str
    payload: bytes
    relay_signature: bytes
    cosignature: bytes | None

    @classmethod
    def of(cls, signed: SignedReceipt, position: int) -> Self:
        """Return a signed receipt as a store has it at a position."""
        receipt = signed.receipt
        return cls(
            position=position,
            id=receipt.id,
            stream=receipt.stream,
            seq=receipt.seq,
            kind=receipt.kind,
            payload=signed.payload,
            relay_signature=signed.relay_signature,
            cosignature=signed.cosignature,
        )
