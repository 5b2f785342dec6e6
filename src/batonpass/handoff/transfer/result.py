"""The result of a handoff as a value, and how a parent takes it in: its items, its report and its taint.

A decline or a failure is a result too, not an exception.
"""

import json
from typing import Any, Final

from msgspec import Struct

from batonpass.errors import InvalidValueError, NotFoundError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.history.offers import author_of, read_items, read_offer, read_report, read_words
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.taint.intake import find_sources, given_by, take_in, take_result
from batonpass.model.base.checks import shorten
from batonpass.model.base.content_names import EVIDENCE, MESSAGE, REPORT
from batonpass.model.base.ids import HandoffId, RunId, StreamId
from batonpass.model.base.kinds import WaitUntil
from batonpass.model.base.label import Label, Source, SourceType
from batonpass.model.base.lifecycle import DELIVERED, State
from batonpass.model.baton.items import Item, Report
from batonpass.model.bodies.body import (
    HandoffCompleted,
    HandoffFailed,
    HandoffParked,
    Kind,
    Part,
    VerificationFailed,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff
from batonpass.records.wait import ENDED, find_blocker
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.wire.documents import decode_work
from batonpass.wire.receipt_codec import decode_receipt

_NOBODY: Final = "user:nobody"
EXTERNAL: Final = Label(SourceType.EXTERNAL)
SETTLED: Final = ENDED | {State.HELD, State.ASKED}
_CLOSED: Final = frozenset({*DELIVERED, State.REFUTED, State.FAILED})
_SAID_WHY: Final = {
    State.DECLINED: Kind.HANDOFF_DECLINED,
    State.DENIED: Kind.HANDOFF_DENIED,
    State.CANCELLED: Kind.HANDOFF_CANCELLED,
    State.EXPIRED: Kind.HANDOFF_EXPIRED,
    State.REFUTED: Kind.VERIFICATION_FAILED,
}


class Result(Struct, frozen=True, kw_only=True):
    """The state of a handoff: its result, or the reason why it has none."""

    handoff: HandoffId
    run: RunId | None
    state: State
    attempt: int
    reused: bool = False  # the result was there before this request: nobody worked for it now
    report: Report | None = None
    reason: str = ""
    error: str | None = None  # code of the failure or the decline
    question: str | None = None  # the question that waits for an answer
    label: Label | None = None  # of report, reason and question; None if nobody labelled them
    sources: tuple[Source, ...] = ()  # their taint: a run that reads them takes it over
    blocked_by: HandoffId | None = None  # the handoff that somebody has to approve or answer: this one, or one below

    def __repr__(self) -> str:
        said = self.report.result if self.report is not None else self.question or self.reason
        return f"<Result of {self.handoff}: {self.state} in attempt {self.attempt}, {shorten(said)}>"

    @property
    def delivered(self) -> bool:
        """Return whether there is a result, verified or not."""
        return self.state in DELIVERED

    @property
    def settled(self) -> bool:
        """Return whether waiting longer would change nothing: it ended, or somebody has to act."""
        # A handoff that waits for one below it is held too, and goes on by itself.
        return self.state in SETTLED and (self.state is not State.HELD or self.blocked_by is not None)

    def is_over(self, until: WaitUntil) -> bool:
        """Return whether a wait for it is over."""
        return self.state in ENDED or (until is WaitUntil.SETTLED and self.settled)

    @property
    def value(self) -> Any:  # noqa: ANN401 - whatever the runner returned
        """Return the result for programs; None if there is none."""
        if self.report is None:
            return None
        return self.report.result if self.report.value is None else json.loads(self.report.value)


def read_result(view: LedgerView, handoff: Handoff) -> Result:
    """Return the result of a handoff so far."""
    report = read_report(view, handoff) if handoff.run is not None and handoff.state in SETTLED else None
    label, sources = _label_of(view, handoff)
    blocker = find_blocker(view, handoff) if handoff.state in {State.HELD, State.ASKED} else None
    return Result(
        handoff=handoff.id,
        run=handoff.run,
        state=handoff.state,
        attempt=handoff.attempt,
        report=report,
        reason=_reason(view, handoff),
        error=_error(view, handoff),
        question=read_offer(view, handoff).open_question if handoff.state is State.ASKED else None,
        label=label,
        sources=sources,
        blocked_by=None if blocker is None else blocker.id,
    )


def read_sent_back(view: LedgerView, handoff: Handoff) -> str:
    """Return why the result before the current attempt was refuted, and by whom; empty if it was not."""
    earlier = handoff.attempt - 1 if handoff.state is State.RUNNING else handoff.attempt
    if earlier < 1:
        return ""
    found = view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=Kind.VERIFICATION_FAILED))
    for receipt in map(decode_receipt, [stored.payload for stored in found]):
        if isinstance(receipt.body, VerificationFailed) and receipt.body.attempt == earlier:
            return f"{receipt.body.by}: {read_words(view, receipt.content.get(EVIDENCE))}"
    return ""


def completed_here(child: Holding) -> Result | None:
    """Return the result of a handoff that this process has just completed, without its report; None if it has not.

    The report is left out because the one in memory may still contain secrets. In the ledger they were removed.
    """
    handoff = child.working.run.handoff
    if child.ended is None or handoff is None or not isinstance(child.ended.receipt.body, HandoffCompleted):
        return None
    body = child.ended.receipt.body
    return Result(
        handoff=handoff,
        run=child.id,
        state=State.COMPLETED,
        attempt=child.working.run.attempt,
        label=body.label,
        sources=given_by(body),
    )


def _label_of(view: LedgerView, handoff: Handoff) -> tuple[Label | None, tuple[Source, ...]]:
    """Return label and taint of a result: from its last receipt, or from the agent that asked, declined or judged.

    An agent that asks or declines has no run that could have a label. But it has read the offer and the work of earlier
    attempts, so their taint counts.
    """
    if handoff.run is not None and handoff.state in _CLOSED:
        body = _last(view, handoff.run).body
        if isinstance(body, HandoffCompleted | HandoffFailed):
            return body.label, given_by(body)
    said = _said(view, handoff)
    if handoff.state is not State.ASKED and (said is None or may_endorse(getattr(said.body, "by", _NOBODY))):
        return None, ()  # nobody said anything, or a person or the relay itself did
    try:
        found = tuple(find_sources(view, handoff.id))
    except InvalidValueError:
        # The offer cannot be read. If there was an attempt, its run stands for every source that reached it.
        found = () if handoff.run is None else (handoff.run,)
    return (EXTERNAL, found) if found else (None, ())


def take_words(desk: Desk, parent: Holding, result: Result) -> None:
    """Taint the run that reads a question or a reason with the taint of its author: words remove no taint."""
    take_in(desk, parent, result.sources, handoff=result.handoff)


def learn(desk: Desk, parent: Holding, handoff: HandoffId) -> None:
    """Add the items and the report of a child to its parent, with their taint; they travel with its next handoffs."""
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        if known.run is None or known.run in parent.learned or known.state not in _CLOSED:
            return
        receipt = _last(view, known.run)
        ref = receipt.content.get(REPORT)
        # A failed attempt has no result, but its other items, such as rejected paths and open questions, are known now.
        # A refuted result travels on as refuted: whoever goes on has to know what was found wrong.
        report = read_report(view, known) if ref is not None and known.state is not State.FAILED else None
        given = receipt.body.gives if isinstance(receipt.body, HandoffCompleted | HandoffFailed) else ()
        unknown = [item for item in given if item.item not in parent.notes]
        contents = (
            {stored.id: stored for stored in view.find_contents([item.item for item in unknown])} if unknown else {}
        )
        found, _ = read_items(view, unknown, contents)
        stored = None if ref is None or report is None else view.get_content(ref.id).body
        work = (None, None) if stored is None else decode_work(stored)
    parent.learned.add(known.run)
    take_result(desk, parent, receipt)
    if known.state is State.COMPLETED:
        parent.watched.add(handoff)
    parent.add(*found)
    if ref is not None and report is not None:
        parent.add(
            Item(
                id=ref.id,
                digest=ref.digest,
                part=Part.COMPLETED,
                by=author_of(known.to),
                at=receipt.at,
                value=report,
                role=work[0],
                phase=work[1],
            ),
        )


def learn_own(desk: Desk, parent: Holding, child: Holding) -> bool:
    """Do the same as `learn` for a child that this process has just closed, without reading the ledger.

    Return False if that is not possible; then `learn` has to do it.
    """
    handoff = child.working.run.handoff
    if child.ended is None or handoff is None:
        return False
    if child.id in parent.learned:
        return True
    receipt = child.ended.receipt
    parent.learned.add(child.id)
    take_result(desk, parent, receipt)
    parent.taint.passages.update(child.taint.passages)
    parent.add(*child.found())
    if isinstance(receipt.body, HandoffCompleted):
        parent.watched.add(handoff)
        if child.report is not None:
            ref, by = receipt.content[REPORT], author_of(child.agent)
            role, phase = child.work
            report = Item(
                id=ref.id,
                digest=ref.digest,
                part=Part.COMPLETED,
                by=by,
                at=receipt.at,
                value=child.report,
                role=role,
                phase=phase,
            )
            parent.add(report)
    return True


def _reason(view: LedgerView, handoff: Handoff) -> str:
    parked = _parked(view, handoff)
    if parked is not None:
        return read_words(view, parked.content.get("reason"))
    if handoff.state is State.FAILED and handoff.run is not None:
        return _last_line(read_words(view, _last(view, handoff.run).content.get(MESSAGE)))
    said = _said(view, handoff)
    return "" if said is None else read_words(view, said.content.get("reason") or said.content.get("evidence"))


def _error(view: LedgerView, handoff: Handoff) -> str | None:
    if (parked := _parked(view, handoff)) is not None:
        return getattr(parked.body, "error", None)
    if handoff.state is State.FAILED and handoff.run is not None:
        return getattr(_last(view, handoff.run).body, "error", None)
    said = _said(view, handoff) if handoff.state is State.DECLINED else None
    return None if said is None else getattr(said.body, "code", None)


def _parked(view: LedgerView, handoff: Handoff) -> Receipt | None:
    """Return the receipt that says why no further attempt is made; None if it failed by its own attempt."""
    if handoff.state is not State.FAILED:
        return None
    try:
        receipt = _last(view, StreamId(handoff.id))
    except NotFoundError:
        return None
    return receipt if isinstance(receipt.body, HandoffParked) else None


def _said(view: LedgerView, handoff: Handoff) -> Receipt | None:
    """Return the receipt that gives the reason for the state of a handoff; None if there is none."""
    kind = _SAID_WHY.get(handoff.state)
    if kind is None:
        return None
    found = [*view.find_receipts(ReceiptQuery(stream=StreamId(handoff.id), kind=kind))]
    return decode_receipt(found[-1].payload) if found else None


def _last(view: LedgerView, of: RunId | StreamId) -> Receipt:
    stream = view.get_stream(StreamId(of))
    return decode_receipt(view.get_receipt_at(stream.id, stream.seq).payload)


def _last_line(words: str) -> str:
    return next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "")
