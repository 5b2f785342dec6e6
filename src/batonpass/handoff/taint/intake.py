"""How taint enters a run and leaves it: each source that arrives and each endorsement is a receipt.

All doors use these functions, so that there is no way into a run on which content loses its source.
"""

from collections.abc import Iterable

from batonpass.errors import FencedError, NotFoundError, NotPersonError, StoreError, StreamClosedError
from batonpass.guard.policy.taint_gate import may_endorse
from batonpass.handoff.history.offers import read_offer
from batonpass.handoff.history.past_calls import read_resumption
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.runtime.run_taint import Taint
from batonpass.model.base.checks import require_text
from batonpass.model.base.content_names import REASON
from batonpass.model.base.ids import CallId, HandoffId, PrincipalId, RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import Source, named_sources
from batonpass.model.bodies.body import HandoffCompleted, HandoffFailed, Part, RunEndorsed, RunTainted, ToolCompleted
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.receipt_taint import brought_by, endorsed_by
from batonpass.store.port import LedgerView


def take_in(
    desk: Desk,
    holding: Holding,
    sources: Iterable[Source],
    *,
    handoff: HandoffId | None = None,
    wrote: CallId | None = None,
    words: tuple[Content, ...] = (),
) -> None:
    """Taint a run with the sources that are new to it, and record that. Raises `StoreError` in an enforced run."""
    taint = holding.taint
    with taint.lock:
        unknown = named_sources(holding.id, taint.unknown(sources))
        if not unknown or holding.replaying:
            return
        receipt = None
        try:
            if holding.ended is None:
                fill_gap(desk, holding)
                body = RunTainted(run=holding.id, sources=unknown, handoff=handoff, wrote=wrote)
                receipt = desk.recording.record(holding.working, body, words).receipt.id
        except (FencedError, StreamClosedError):
            pass  # the run is over: it can record nothing more, and reading does no harm
        except StoreError:
            if holding.working.mode is Mode.ENFORCED:
                raise
        taint.enter(unknown, receipt)
        taint.unread.update(unknown)


def take_result(desk: Desk, parent: Holding, receipt: Receipt) -> None:
    """Taint a parent with the sources of a child whose result it takes: a report removes no taint."""
    body = receipt.body
    if not isinstance(body, HandoffCompleted | HandoffFailed):
        return
    parent.taint.learn(body.label)
    if body.label is not None and body.run not in body.taint:
        # An untrusted item that the child does not list as taint was endorsed there. We cannot conclude this if the run
        # of the child stands for all its sources, because then the list does not name every one.
        for item in _untrusted(body):
            if item not in body.taint:
                parent.taint.endorse(item)
    take_in(desk, parent, given_by(body), handoff=body.handoff)


def given_by(body: HandoffCompleted | HandoffFailed) -> tuple[Source, ...]:
    """Return the sources that the last receipt of a child brings to the run that takes its result."""
    return body.taint if body.label is not None else _untrusted(body)


def _untrusted(body: HandoffCompleted | HandoffFailed) -> tuple[Source, ...]:
    return tuple(item.item for item in body.gives if item.part is Part.UNTRUSTED)


def take_receipt(taint: Taint, receipt: Receipt) -> None:
    """Add the taint and the endorsements of one receipt, so that a resumed run has its old label."""
    taint.enter(brought_by(receipt), receipt.id)
    taint.unread.update(brought_by(receipt))
    if isinstance(receipt.body, ToolCompleted):
        taint.learn(receipt.body.label)
    if (source := endorsed_by(receipt)) is not None:
        taint.endorse(source)


def endorse(desk: Desk, holding: Holding, source: Source, *, by: str, reason: str) -> None:
    """Record that a person answers for a source: from now on, it taints neither the run nor its later handoffs.

    Raises `NotPersonError` if `by` is not a person, and `NotFoundError` if the source does not taint the run.
    """
    require_text("reason", reason)
    if not may_endorse(by):
        raise NotPersonError(source, by)
    if holding.replaying:
        return
    with holding.taint.lock:
        if source not in holding.taint.entered:
            raise NotFoundError("content from outside that taints this run", source)
        body = RunEndorsed(run=holding.id, source=source, by=PrincipalId(by))
        fill_gap(desk, holding)
        desk.recording.record(holding.working, body, (desk.text(REASON, reason),))
        holding.taint.endorse(source)


def find_sources(view: LedgerView, handoff: HandoffId) -> dict[Source, RunId | None]:
    """Return the sources that taint the attempts at a handoff, each with the run that it reached; None: all of them."""
    known = view.get_handoff(handoff)
    offer = read_offer(view, known)
    past = read_resumption(view, known)
    found: dict[Source, RunId | None] = dict.fromkeys(offer.taint)
    for source in past.taint:
        found.setdefault(source, known.run)
    return {source: run for source, run in found.items() if source not in {*offer.endorsed, *past.endorsed}}
