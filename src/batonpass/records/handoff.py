"""A handoff: its offer, all that others did to it, how each attempt was judged, and what became of kept calls."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.errors import NotFoundError
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    Kind,
    VerificationFailed,
    VerificationPassed,
    VerificationRepeated,
    VerificationWaived,
)
from batonpass.model.ledger.receipt import Receipt, StoredReceipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.call import CallOutcome, CallRecord
from batonpass.records.hold import HoldRecord, find_handoff_holds
from batonpass.records.lineage import get_offer
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

# Those that are not over: somebody has to do something yet.
OPEN: Final = frozenset({State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING})

_DELIVERED: Final = frozenset({State.COMPLETED, State.VERIFIED})
_IN_FAVOUR: Final = frozenset({Kind.VERIFICATION_PASSED, Kind.VERIFICATION_REPEATED, Kind.VERIFICATION_WAIVED})

Judged: TypeAlias = VerificationPassed | VerificationFailed | VerificationRepeated | VerificationWaived


class Standing(StrEnum):
    """What became of a result."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    UNVERIFIED = "unverified"


class ResultVerdict(Struct, frozen=True, kw_only=True):
    """How somebody judged the result of one attempt."""

    receipt: Receipt
    body: Judged

    @property
    def standing(self) -> Standing:
        """Return what it makes of the result; one who accepts it unverified verifies nothing."""
        match self.body:
            case VerificationRepeated():
                return Standing.VERIFIED if self.body.passed else Standing.REFUTED
            case VerificationPassed():
                return Standing.VERIFIED
            case VerificationFailed():
                return Standing.REFUTED
            case _:
                return Standing.UNVERIFIED

    @property
    def label(self) -> str:
        """Return it in a word or two."""
        if isinstance(self.body, VerificationWaived):
            return "accepted"
        return f"{'again ' * isinstance(self.body, VerificationRepeated)}{self.standing}"

    @property
    def words(self) -> str:
        """Return who judged, and how."""
        how = "unverified" if isinstance(self.body, VerificationWaived) else self.body.method
        return f"by {self.body.by}, {how}"


class HandoffRecord(Struct, frozen=True, kw_only=True):
    """One handoff as its receipts tell of it."""

    handoff: Handoff
    offer: Receipt
    initiated: HandoffInitiated
    acts: tuple[Receipt, ...]  # what others than its runs did to it
    holds: tuple[HoldRecord, ...]
    stored: tuple[StoredReceipt, ...]  # what this rests on: the offer, and the acts

    @property
    def id(self) -> HandoffId:
        """Return what names it."""
        return self.handoff.id

    def verdicts(self, attempt: int) -> tuple[ResultVerdict, ...]:
        """Return how the result of an attempt was judged, and judged again."""
        return tuple(
            ResultVerdict(receipt=receipt, body=receipt.body)
            for receipt in self.acts
            if isinstance(receipt.body, Judged) and receipt.body.attempt == attempt
        )

    def standing(self, attempt: int) -> Standing:
        """Return what became of the result of an attempt."""
        return standing_of(self.verdicts(attempt))


def standing_of(verdicts: Iterable[ResultVerdict]) -> Standing:
    """Return what verdicts make of a result: the first that says something decides; a later look stands beside it."""
    said = (verdict.standing for verdict in verdicts)
    return next((standing for standing in said if standing is not Standing.UNVERIFIED), Standing.UNVERIFIED)


def read_handoff(view: LedgerView, handoff: Handoff) -> HandoffRecord:
    """Return a handoff with its offer and all that others did to it."""
    offer, initiated = get_offer(view, handoff)
    acts = tuple(view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id))))
    return HandoffRecord(
        handoff=handoff,
        offer=offer,
        initiated=initiated,
        acts=tuple(map(read_receipt, acts)),
        holds=tuple(find_handoff_holds(view, handoff)),
        stored=(view.get_receipt(offer.id), *acts),
    )


def find_answering(view: LedgerView, record: HandoffRecord, call: CallRecord) -> int:
    """Return the attempt whose verdict is about a call: the last one that kept its result, else its own.

    What an older relay closed says how many finished calls it kept, and not which: only one that kept as many as there
    were has surely kept each.
    """
    answering = own = view.get_run(call.run).attempt
    finished = 0
    for run in view.find_attempts(record.handoff):
        closed = next(_closings(view, run.id), None)
        if closed is not None and run.attempt > own:
            kept_all = not closed.keeps and call.outcome is CallOutcome.COMPLETED and 0 < closed.kept == finished
            answering = run.attempt if call.id in closed.keeps or kept_all else answering
        finished += _finished(view, run.id)
    return answering


def _closings(view: LedgerView, run: RunId) -> Iterator[HandoffCompleted | HandoffFailed]:
    for kind in (HandoffCompleted.kind, HandoffFailed.kind):
        for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run), kind=kind)):
            body = read_receipt(stored).body
            # An offer that was refused is a failed handoff of this run's own: it closed nothing.
            if isinstance(body, HandoffCompleted | HandoffFailed) and body.attempt:
                yield body


def _finished(view: LedgerView, run: RunId) -> int:
    return sum(1 for _ in view.find_receipts(ReceiptQuery(stream=StreamId(run), kind=Kind.TOOL_COMPLETED)))


def is_unverified(view: LedgerView, handoff: Handoff) -> bool:
    """Return whether a handoff delivered and nobody but its producer verified that, nor accepted it with a reason."""
    if handoff.state not in _DELIVERED:
        return False
    try:
        view.get_stream(StreamId(handoff.id))
    except NotFoundError:
        return True
    found = view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id)))
    bodies = [read_receipt(stored).body for stored in found if stored.kind in _IN_FAVOUR]
    # Of the latest attempt only: an earlier one's result was another.
    said = [body for body in bodies if getattr(body, "attempt", None) == handoff.attempt]
    return not any(isinstance(body, VerificationWaived) or _is_by_another(body) for body in said)


def _is_by_another(body: object) -> bool:
    match body:
        case VerificationPassed():
            return not body.by_producer
        case VerificationRepeated():
            return body.passed and not body.by_producer
        case _:
            return False
