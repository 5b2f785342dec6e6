"""A stream: one hash chain of receipts, and its head."""

from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Final

from msgspec import Struct

from batonpass.model.base.checks import require_digest, require_instance, require_integer
from batonpass.model.base.ids import RUN, Digest, LedgerId, PublicKey, RunId, StreamId, require_id, require_stream


class StreamKind(StrEnum):
    """Who writes a stream: the relay of a run; anybody who acts on a handoff; a relay about itself."""

    RUN = "run"
    HANDOFF = "handoff"
    RELAY = "relay"


class Stream(Struct, frozen=True, kw_only=True):
    """The head of a stream, its epoch, and whether it takes more receipts."""

    id: StreamId
    root: RunId | None  # the tree it belongs to; None for a relay's own stream
    seq: int  # number of the last receipt
    head: Digest  # digest of the last receipt
    epoch: int
    open: bool

    def __post_init__(self) -> None:
        require_stream("id", self.id)
        if self.root is not None:
            require_id("root", self.root, RUN)
        require_integer("seq", self.seq, least=1)
        require_digest("head", self.head)
        require_integer("epoch", self.epoch, least=1)
        require_instance("open", self.open, bool)

    @property
    def kind(self) -> StreamKind:
        """Return the kind of this stream."""
        return kind_of(self.id)


class Mark(Struct, frozen=True, forbid_unknown_fields=True):
    """One receipt that a ledger has acknowledged to a relay."""

    ledger: LedgerId
    stream: StreamId
    seq: int
    head: Digest
    at: datetime


_KINDS: Final = {kind.value: kind for kind in StreamKind}


def kind_of(stream: StreamId) -> StreamKind:
    """Return the kind of stream that an id belongs to."""
    return _KINDS[stream.partition("_")[0]]


def genesis(ledger: LedgerId, root_key: PublicKey) -> Digest:
    """Return the digest that precedes the first receipt of every root run and of every relay's own stream.

    It binds them to the ledger and to its root key. So no tree can be moved to another ledger, and a ledger cannot
    change its root key without breaking every tree.
    """
    return Digest(sha256(f"urn:batonpass:ledger:{ledger}:{root_key}".encode()).hexdigest())
