"""Content from outside that reaches a run, and people who endorse it: each is a receipt."""

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
    """Write down that content from outside reached a run, if that is new to it."""
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
            pass  # the run is over: nothing that it does can be recorded any more, and whoever reads may read
        except StoreError:
            if holding.working.mode is Mode.ENFORCED:
                raise
        taint.enter(unknown, receipt)
        taint.unread.update(unknown)


def take_result(desk: Desk, parent: Holding, receipt: Receipt) -> None:
    """Let what a child took in from outside reach whoever takes its result: a report launders nothing."""
    body = receipt.body
    if not isinstance(body, HandoffCompleted | HandoffFailed):
        return
    parent.taint.learn(body.label)
    if body.label is not None and body.run not in body.taint:
        # It is said to come from outside, and is not among what taints: somebody endorsed it there.
        for item in _untrusted(body):
            if item not in body.taint:
                parent.taint.endorse(item)
    take_in(desk, parent, given_by(body), handoff=body.handoff)


def given_by(body: HandoffCompleted | HandoffFailed) -> tuple[Source, ...]:
    """Return what a close-out brings from outside to whoever takes what it gives."""
    return body.taint if body.label is not None else _untrusted(body)


def _untrusted(body: HandoffCompleted | HandoffFailed) -> tuple[Source, ...]:
    return tuple(item.item for item in body.gives if item.part is Part.UNTRUSTED)


def take_receipt(taint: Taint, receipt: Receipt) -> None:
    """Take in what a receipt of a run's own stream says of its taint: whoever resumes a run knows what it knew."""
    taint.enter(brought_by(receipt), receipt.id)
    taint.unread.update(brought_by(receipt))
    if isinstance(receipt.body, ToolCompleted):
        taint.learn(receipt.body.label)
    if (source := endorsed_by(receipt)) is not None:
        taint.endorse(source)


def endorse(desk: Desk, holding: Holding, source: Source, *, by: str, reason: str) -> None:
    """Let content from outside be treated as somebody's own, by a run and by whatever comes of it from now on.

    Raises `NotPersonError`, and `NotFoundError` if that content does not taint the run.
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
    """Return what came from outside to the attempts at a handoff and nobody endorsed, and to which; None: all."""
    known = view.get_handoff(handoff)
    offer = read_offer(view, known)
    past = read_resumption(view, known)
    found: dict[Source, RunId | None] = dict.fromkeys(offer.taint)
    for source in past.taint:
        found.setdefault(source, known.run)
    return {source: run for source, run in found.items() if source not in {*offer.endorsed, *past.endorsed}}
