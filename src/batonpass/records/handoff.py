"""One handoff: its offer, the acts of others on it, the verdicts on its attempts, and the calls that were kept."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.errors import NotFoundError
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.base.lifecycle import DELIVERED, State
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
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallOutcome, CallRecord
from batonpass.records.hold import HoldRecord, find_handoff_holds
from batonpass.records.lineage import get_offer
from batonpass.records.text import read_receipt
from batonpass.store.port import LedgerView, ReceiptQuery

# States in which somebody still has to act.
OPEN: Final = frozenset({State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING})

# States of a handoff that say more about its latest attempt than the state of the run does.
_OF_ATTEMPT: Final = frozenset({State.RUNNING, State.VERIFIED, State.REFUTED})
_IN_FAVOUR: Final = frozenset({Kind.VERIFICATION_PASSED, Kind.VERIFICATION_REPEATED, Kind.VERIFICATION_WAIVED})

Judged: TypeAlias = VerificationPassed | VerificationFailed | VerificationRepeated | VerificationWaived


class Standing(StrEnum):
    """Whether a result was verified."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    UNVERIFIED = "unverified"


def attempt_state(handoff: Handoff, run: Run) -> str:
    """Return how an attempt at a handoff stands. One that is over stays over while the handoff waits for the next."""
    is_told = run.id == handoff.run and handoff.state in _OF_ATTEMPT
    return str(handoff.state if is_told else run.state)


class ResultVerdict(Struct, frozen=True, kw_only=True):
    """A verdict on the result of one attempt."""

    receipt: Receipt
    body: Judged

    @property
    def standing(self) -> Standing:
        """Return the standing it gives the result. Accepting a result unverified does not verify it."""
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
        """Return the verdict in one or two words."""
        if isinstance(self.body, VerificationWaived):
            return "accepted"
        return f"{'again ' * isinstance(self.body, VerificationRepeated)}{self.standing}"

    @property
    def words(self) -> str:
        """Return who gave the verdict, and how."""
        how = "unverified" if isinstance(self.body, VerificationWaived) else self.body.method
        return f"by {self.body.by}, {how}"


class HandoffRecord(Struct, frozen=True, kw_only=True):
    """One handoff as its receipts describe it."""

    handoff: Handoff
    offer: Receipt
    initiated: HandoffInitiated
    acts: tuple[Receipt, ...]  # done by others than its own runs
    holds: tuple[HoldRecord, ...]
    stored: tuple[StoredReceipt, ...]  # the stored receipts behind this: the offer and the acts

    @property
    def id(self) -> HandoffId:
        """Return the id of the handoff."""
        return self.handoff.id

    def verdicts(self, attempt: int) -> tuple[ResultVerdict, ...]:
        """Return the verdicts on an attempt, in order."""
        found = (judged_in(receipt) for receipt in self.acts)
        return tuple(verdict for verdict in found if verdict is not None and verdict.body.attempt == attempt)

    def standing(self, attempt: int) -> Standing:
        """Return the standing of an attempt's result."""
        return standing_of(self.verdicts(attempt))


def judged_in(receipt: Receipt) -> ResultVerdict | None:
    """Return the verdict that a receipt gives; None if it gives none."""
    return ResultVerdict(receipt=receipt, body=receipt.body) if isinstance(receipt.body, Judged) else None


def standing_of(verdicts: Iterable[ResultVerdict]) -> Standing:
    """Return the standing that verdicts give: the first that verifies or refutes decides."""
    said = (verdict.standing for verdict in verdicts)
    return next((standing for standing in said if standing is not Standing.UNVERIFIED), Standing.UNVERIFIED)


def read_handoff(view: LedgerView, handoff: Handoff) -> HandoffRecord:
    """Return a handoff with its offer and all acts on it."""
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
    """Return the attempt whose verdict covers a call: the last one that kept its result, else its own.

    Older relays recorded only how many calls they kept. Then we can be sure only if they kept all there were.
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
            # A refused offer is recorded as a failed handoff of this run; it did not close the run.
            if isinstance(body, HandoffCompleted | HandoffFailed) and body.attempt:
                yield body


def _finished(view: LedgerView, run: RunId) -> int:
    return sum(1 for _ in view.find_receipts(ReceiptQuery(stream=StreamId(run), kind=Kind.TOOL_COMPLETED)))


def is_unverified(view: LedgerView, handoff: Handoff) -> bool:
    """Return whether a handoff delivered and nobody but its producer verified that, nor accepted it with a reason."""
    if handoff.state not in DELIVERED:
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
