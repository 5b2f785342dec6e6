"""The hops from a run up to the human: the permits of each, and who approved it."""

from collections.abc import Iterator
from typing import Final

from batonpass.accounts.trail.first_lines import first_line, looked_for
from batonpass.accounts.why.why_values import Explanation, Fact, Why, WhyHop
from batonpass.audit.short_ids import ending
from batonpass.ledger.position import mode_of_child
from batonpass.model.base.content_names import ANSWER, QUESTION, REASON, TASK
from batonpass.model.base.ids import ContentId, StreamId
from batonpass.model.bodies.body import (
    HandoffAnswered,
    HandoffApproved,
    HandoffAsked,
    HandoffBacked,
    HandoffCancelled,
    HandoffDeclined,
    HandoffDenied,
    HandoffExpired,
    HandoffHeld,
    RunStarted,
    ToolApproved,
    ToolBacked,
    ToolRefused,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.ruling import Decided
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.grant import brief_of, given_by, may_under, terms_in
from batonpass.records.hold import find_handoff_holds
from batonpass.records.lineage import Tasks, find_ancestors, get_offer
from batonpass.records.text import Found, Text, read_receipt, read_stream, read_texts
from batonpass.store.port import LedgerView

GONE: Final = "the words are no longer here"


def name_of(run: Run) -> str:
    """Return the name of a run."""
    return f"{run.agent} {ending(run.id)}"


def quoted(text: Text | None) -> str:
    """Return the first line of a text in quotes, or why it is not available."""
    if text is None:
        return "unknown"
    if text.found is not Found.KEPT or text.body is None:
        return str(text.found)
    return str(first_line(REASON, text.ref.id, text.body))


def read_hops(view: LedgerView, run: Run, item: ContentId | None = None) -> tuple[WhyHop, ...]:
    """Return a run and every run above it; with an item, whether each was given it."""
    # Each hop is read from the signed offer in its parent's stream, not from the rows. So a run cannot claim more
    # than its sender gave it, and the walk ends at the root, whose first receipt has the human's words.
    return tuple(_run_hop(view, each, item) for each in (run, *find_ancestors(view, run)))


def handoff_hops(view: LedgerView, handoff: Handoff, item: ContentId | None = None) -> tuple[WhyHop, ...]:
    """Return a handoff, accepted or not, and every run above it; `item` as in `read_hops`."""
    taken = None if handoff.run is None else view.get_run(handoff.run)
    own = _handoff_hop(view, handoff, taken, item)
    parent = view.get_run(handoff.parent)
    return (own, *read_hops(view, parent, item))


def answer_of(
    view: LedgerView, run: Run, receipt: Receipt, explained: Explanation, *, about: str, hops: tuple[WhyHop, ...] = ()
) -> Why:
    """Return an explanation as the whole answer about an id, with the principal and, by default, the hops of a run."""
    return Why(
        verdict=explained.verdict,
        answer=explained.answer,
        kind=about.partition("_")[0],
        id=about,
        receipt=receipt.id,
        at=receipt.at,
        mode=receipt.mode,
        rule=explained.rule,
        facts=explained.facts,
        hops=hops or read_hops(view, run, explained.item),
        principal=run.principal,
        intent=Tasks(view).find(view.get_run(run.root)),
    )


def find_acts(view: LedgerView, handoff: Handoff) -> Iterator[tuple[Receipt, dict[str, Text]]]:
    """Yield the acts of others on a handoff."""
    return ((receipt, read_texts(view, receipt)) for receipt in read_stream(view, StreamId(handoff.id)))


def decision(receipt: Receipt, texts: dict[str, Text]) -> Fact | None:
    """Return a ruling on a handoff or call as a fact; None for other receipts."""
    reason = f": {quoted(texts[REASON])}" if REASON in texts else ""
    match receipt.body:
        case HandoffHeld() as body:
            label, text = "held", f"attempt {body.attempt} stopped before a call: {body.reason}{reason}"
        case HandoffApproved() | ToolApproved() as body:
            label, text = "approved", f"by {body.by} · {proof_of(body)}{_looked(body)}{reason}"
        case HandoffBacked() | ToolBacked() as body:
            others = "another person has to approve it too"
            label, text = "approved", f"by {body.by} · {proof_of(body)}{_looked(body)} · {others}{reason}"
        case HandoffDenied() | ToolRefused() as body:
            proof = f" · {proof_of(body)}" if body.proven else ""
            label, text = "denied", f"by {body.by}{proof}{reason}"
        case HandoffAsked() as body:
            label, text = "asked", f"by {body.by}: {quoted(texts.get(QUESTION))} ({body.error}: {body.check})"
        case HandoffAnswered() as body:
            label, text = "answered", f"by {body.by}: {quoted(texts.get(ANSWER))}"
        case HandoffDeclined() as body:
            label, text = "declined", f"by {body.by}: {body.code}{reason}"
        case HandoffCancelled() as body:
            label, text = "cancelled", f"by {body.by}{reason}"
        case HandoffExpired():
            label, text = "expired", reason.removeprefix(": ") or "nobody waits for it any more"
        case _:
            return None
    return Fact.of(label, text, receipt)


def proof_of(approval: Decided) -> str:
    """Return how far a ruling is proven."""
    return "proven" if approval.proven else "unproven: no approver's key signed"


def _looked(approval: Decided) -> str:
    shown = f" · was shown {'nothing' if approval.shown is None else approval.shown[:12]}"
    looked = looked_for(approval)
    return shown if looked is None else f"{shown} · {looked}"


def _run_hop(view: LedgerView, run: Run, item: ContentId | None) -> WhyHop:
    if run.handoff is not None:
        return _handoff_hop(view, view.get_handoff(run.handoff), run, item)
    first = read_receipt(view.get_receipt_at(StreamId(run.id), 1))
    return WhyHop(
        name=name_of(run),
        run=run.id,
        handoff=None,
        mode=first.mode,
        may=may_under(view, first, ()),
        granted=isinstance(first.body, RunStarted) and first.body.terms is not None,
        asked_by=None,
        task=read_texts(view, first).get("intent"),
        offer=None,
    )


def _offer_approvals(view: LedgerView, handoff: Handoff) -> Iterator[Fact]:
    """Yield the approvals of a handoff held at its offer. Approvals of calls are shown with the calls."""
    for record in find_handoff_holds(view, handoff):
        if record.hold.call is None:
            yield Fact.of("held", "at its offer", record.receipt)
            for approval in record.approvals:
                reason = {} if approval.reason is None else {REASON: approval.reason}
                fact = decision(approval.receipt, reason)
                yield from () if fact is None else (fact,)


def _handoff_hop(view: LedgerView, handoff: Handoff, run: Run | None, item: ContentId | None) -> WhyHop:
    offer, body = get_offer(view, handoff)
    parent = view.get_run(handoff.parent)
    brief = brief_of(view, offer)
    return WhyHop(
        name=f"{handoff.to} {ending(handoff.id)}" if run is None else name_of(run),
        run=None if run is None else run.id,
        handoff=handoff.id,
        mode=mode_of_child(offer),
        may=may_under(view, offer, None if brief is None else brief.may),
        granted=body.terms is not None,
        granted_by=None if body.terms is None else given_by(terms_in(view, offer), name_of(parent), parent.principal),
        asked_by=name_of(parent),
        task=read_texts(view, offer).get(TASK),
        offer=offer.id,
        carried=None if item is None else any(carried.item == item for carried in body.carries),
        approvals=tuple(_offer_approvals(view, handoff)),
    )
