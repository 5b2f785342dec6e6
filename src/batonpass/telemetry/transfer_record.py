"""The transfers of one handoff: from an offer, or from the decision to try again, until somebody delivered or gave up.

A span is sent when it is over and never again, so a handoff that is tried again is a second transfer, linked to the
first. Only receipts before its end in the ledger count, so a transfer that is read again later is the same.
"""

from collections.abc import Iterator

from msgspec import Struct, field

from batonpass.model.base.ids import HandoffId, StreamId
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCancelled,
    HandoffCompleted,
    HandoffDeclined,
    HandoffDenied,
    HandoffExpired,
    HandoffFailed,
    HandoffParked,
    HandoffReplaced,
    HandoffRetried,
    Kind,
)
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

_BEGIN = (HandoffRetried, HandoffReplaced)
_END = (
    HandoffCompleted,
    HandoffFailed,
    HandoffDeclined,
    HandoffDenied,
    HandoffCancelled,
    HandoffExpired,
    HandoffParked,
)


class TransferRecord(Struct, kw_only=True):
    """One transfer: the receipt that began it, the events since then, and the receipt that ended it."""

    began: Receipt
    ended: Receipt | None = None
    events: list[Receipt] = field(default_factory=list)
    after: list[Receipt] = field(default_factory=list)  # receipts about it after its end, such as a verdict
    before: "TransferRecord | None" = None


def read_transfers(view: LedgerView, handoff: HandoffId, *, until: int) -> list[TransferRecord]:
    """Return the transfers of a handoff, the first first, as they were at a position. Raises `NotFoundError`."""
    known = view.get_handoff(handoff)
    found: list[TransferRecord] = []
    for _, receipt in sorted(_receipts(view, known, until), key=lambda one: one[0]):
        add_to_transfers(found, receipt)
    return found


def add_to_transfers(found: list[TransferRecord], receipt: Receipt) -> None:
    """Add the next receipt of a handoff to its transfers. The first one is its offer."""
    body = receipt.body
    last = found[-1] if found else None
    if last is None:
        found.append(TransferRecord(began=receipt))
    elif isinstance(body, _BEGIN) and last.ended is not None:
        found.append(TransferRecord(began=receipt, before=last))
    elif last.ended is not None:
        last.after.append(receipt)
    elif isinstance(body, _END):
        last.ended = receipt
    else:
        last.events.append(receipt)


def _receipts(view: LedgerView, known: Handoff, until: int) -> Iterator[tuple[int, Receipt]]:
    offer = view.get_receipt_at(StreamId(known.parent), known.seq)
    queries = (
        ReceiptQuery(stream=StreamId(known.id), first=1, last=until),
        ReceiptQuery(attempts_at=known, kind=Kind.HANDOFF_COMPLETED, first=1, last=until),
        ReceiptQuery(attempts_at=known, kind=Kind.HANDOFF_FAILED, first=1, last=until),
        ReceiptQuery(attempts_at=known, kind=Kind.HANDOFF_ACCEPTED, first=1, last=until),
    )
    yield _placed(offer)
    for query in queries:
        for stored in view.find_receipts(query):
            position, receipt = _placed(stored)
            # A refused offer of an attempt stands in the stream of that attempt as well.
            if getattr(receipt.body, "handoff", None) == known.id:
                yield position, receipt


def _placed(stored: StoredReceipt) -> tuple[int, Receipt]:
    return stored.position or 0, read_receipt(stored)


def transfer_at_acceptance(transfers: list[TransferRecord], accepted: Receipt) -> TransferRecord:
    """Return the transfer in which an attempt began."""
    for transfer in transfers:
        if any(one.id == accepted.id for one in transfer.events):
            return transfer
    return transfers[-1]


def is_acceptance(receipt: Receipt) -> bool:
    """Return whether an attempt began with a receipt, which has a span of its own."""
    return isinstance(receipt.body, HandoffAccepted)
