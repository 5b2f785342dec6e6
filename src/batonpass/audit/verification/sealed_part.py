"""The sealed part: trees that have not changed since a seal are not verified in full again.

The seal proves the bytes and the order of every receipt up to it. Those bytes were verified before, and still mean the
same. So a tree without later receipts is only compared: its receipts are hashed, and their chain and contents checked.
A tree that goes on is read from its start, because its new receipts are checked against the old ones.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from hashlib import sha256
from itertools import chain

from msgspec import Struct

from batonpass.errors import (
    ChainError,
    EditedError,
    InvalidValueError,
    MissingError,
    NewerVersionError,
    NotFoundError,
    SealError,
)
from batonpass.ledger.note import Note
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.bodies.body import SessionResumed, ToolCached
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.stream import StreamKind, kind_of
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.outline import Outline, outline_receipt
from batonpass.wire.receipt_codec import decode_receipt


class Passed(Struct, frozen=True):
    """A sealed receipt that was only compared: its outline and digest."""

    receipt: Outline
    digest: bytes


class SealedPart:
    """The receipts up to a seal, and the trees among them that are verified in full anyway."""

    def __init__(self, size: int, roots: AbstractSet[RunId]) -> None:
        self.size = size
        self.roots = roots
        self.passed = 0
        self._heads: dict[StreamId, tuple[int, bytes]] = {}

    def pass_over(self, stored: StoredReceipt) -> Passed | None:
        """Return a sealed receipt of an unchanged tree; None if it must be verified in full.

        Raises `VerificationError` if its columns disagree with it, or it is not the next of its stream.
        """
        if stored.position is None or stored.position > self.size:
            return None
        try:
            outline = outline_receipt(stored.payload)
        except (InvalidValueError, NewerVersionError):
            return None  # the full check reports the damage
        # Relay receipts enrol and revoke keys; they are few and always checked.
        if outline.root is None or outline.root in self.roots:
            return None
        passed = Passed(outline, sha256(stored.payload).digest())
        self._require_columns(stored, outline)
        self._require_successor(passed)
        self.passed += 1
        return passed

    def is_proven(self, stored: StoredReceipt) -> bool:
        """Return whether the seal vouches for a receipt's signatures. Those of relay streams are always checked."""
        return (
            stored.position is not None
            and stored.position <= self.size
            and kind_of(stored.stream) is not StreamKind.RELAY
        )

    def _require_columns(self, stored: StoredReceipt, outline: Outline) -> None:
        for column in ("id", "stream", "seq", "kind"):
            said, found = getattr(outline, column), getattr(stored, column)
            if said != found:
                raise EditedError(
                    f"the column says {found} and the signed bytes say {said}",
                    stream=outline.stream,
                    seq=outline.seq,
                    field=column,
                )

    def _require_successor(self, passed: Passed) -> None:
        outline = passed.receipt
        seq, head = self._heads.get(outline.stream, (0, None))
        if outline.seq != seq + 1:
            raise MissingError(f"receipt {seq + 1} is missing", stream=outline.stream, seq=seq + 1)
        if head is not None and outline.previous != head.hex():
            raise ChainError(
                "it does not hang from the receipt before it", stream=outline.stream, seq=outline.seq, field="previous"
            )
        self._heads[outline.stream] = (outline.seq, passed.digest)


def find_sealed_part(view: LedgerView, seal: Note) -> SealedPart:
    """Return the part that a seal saves: all trees up to it, except those that later receipts continue or refer to.

    The seal itself is checked elsewhere. Raises `SealError` if it covers more receipts than there are.
    """
    size, last = seal.checkpoint.size, view.last_position()
    if size > last:
        raise SealError(
            f"it covers {size} receipts and {last} are here: at least {size - last} were deleted",
            stream=f"seal {size}",
            field="size",
        )
    since = chain(
        view.find_receipts(ReceiptQuery(first=size + 1)),
        view.find_receipts(ReceiptQuery(unsequenced=True)),
    )
    roots: set[RunId] = set()
    for stored in since:
        # An unreadable receipt is reported when its turn comes.
        with suppress(InvalidValueError, NewerVersionError):
            roots.update(_find_trees(view, decode_receipt(stored.payload)))
    return SealedPart(size, roots)


def _find_trees(view: LedgerView, receipt: Receipt) -> Iterator[RunId]:
    """Yield the trees that a receipt is checked against: its own, and those that it continues."""
    body = receipt.body
    if receipt.root is not None:
        yield receipt.root
    elif (run := getattr(body, "run", None)) is not None:
        yield from _tree_of(view, StreamId(run))
    if isinstance(body, SessionResumed):
        yield from (root.run for root in body.roots)
        for handoff in body.in_flight:
            with suppress(NotFoundError):
                yield view.get_handoff(HandoffId(handoff)).root
    elif isinstance(body, ToolCached):
        with suppress(NotFoundError):
            yield from _tree_of(view, view.get_receipt(body.result).stream)


def _tree_of(view: LedgerView, stream: StreamId) -> Iterator[RunId]:
    with suppress(NotFoundError):
        root = view.get_stream(stream).root
        if root is not None:
            yield root
