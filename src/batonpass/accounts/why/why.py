"""Why something was allowed, denied or held, using only receipts."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from batonpass.accounts.handoff.grant_chain import find_revocation
from batonpass.accounts.handoff.reasoning import read_reasoning
from batonpass.accounts.why.why_call import explain_call
from batonpass.accounts.why.why_constraint import explain_result
from batonpass.accounts.why.why_grant import explain_outside, revoked_words
from batonpass.accounts.why.why_hops import (
    GONE,
    answer_of,
    decision,
    find_acts,
    handoff_hops,
    name_of,
    proof_of,
    quoted,
)
from batonpass.accounts.why.why_values import Explanation, Fact, Why, WhyVerdict
from batonpass.audit.meant_ids import Meant, get_meant
from batonpass.audit.short_ids import LAST, ending
from batonpass.errors import NotFoundError
from batonpass.ledger.position import TRIED_OUT, mode_of_child
from batonpass.model.base.content_names import QUESTION, REASON
from batonpass.model.base.ids import CALL, HANDOFF, RECEIPT, RUN, HandoffId, ReceiptId, RunId, StreamId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffApproved,
    HandoffAsked,
    HandoffBacked,
    HandoffCancelled,
    HandoffDeclined,
    HandoffDenied,
    HandoffHeld,
    HandoffInitiated,
    Kind,
    RunRelaxed,
)
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.ledger.run import Handoff, Run
from batonpass.records.call import CallOutcome, call_of, read_calls
from batonpass.records.grant import has_grant
from batonpass.records.item import find_item
from batonpass.records.lineage import get_offer
from batonpass.records.source import IMPORTED, read_source
from batonpass.records.text import Text, read_receipt, read_texts
from batonpass.store.port import LedgerView

KINDS: Final = (RECEIPT, CALL, RUN, HANDOFF)

# Decisions of people or rules; `last` means the last of them.
_DECISIONS: Final = frozenset(
    {
        Kind.TOOL_REQUESTED,
        Kind.TOOL_DENIED,
        Kind.TOOL_HELD,
        Kind.HANDOFF_INITIATED,
        Kind.HANDOFF_HELD,
        Kind.HANDOFF_APPROVED,
        Kind.HANDOFF_DENIED,
        Kind.HANDOFF_ASKED,
        Kind.HANDOFF_DECLINED,
    }
)
_ENDED: Final = frozenset({State.COMPLETED, State.VERIFIED, State.REFUTED, State.FAILED})
_MOST: Final = 10

Acts = list[tuple[Receipt, dict[str, Text]]]


def explain(view: LedgerView, given: str) -> Why:
    """Return why a receipt, call, run or handoff was allowed, denied or held.

    Raises `NotFoundError` and `AmbiguousIdError`.
    """
    meant = _last(view) if given.strip() == LAST else get_meant(view, given, KINDS)
    match meant.kind:
        case "run":
            why = _explain_run(view, view.get_run(RunId(meant.id)))
        case "handoff":
            why = explain_handoff(view, view.get_handoff(HandoffId(meant.id)))
        case _:
            why = explain_receipt(view, read_receipt(view.get_receipt(ReceiptId(meant.receipt or meant.id))))
    return _as_it_happened(view, why)


def _as_it_happened(view: LedgerView, why: Why) -> Why:
    """Return the answer with the times from imported receipts, and marked if it is about one."""
    told = dict.fromkeys(receipt for receipt in (why.receipt, *(fact.receipt for fact in why.facts)) if receipt)
    receipts = [read_receipt(view.get_receipt(receipt)) for receipt in told]
    sources = {receipt.id: source for receipt in receipts if (source := read_source(view, receipt)) is not None}
    times = {receipt: source.at for receipt, source in sources.items() if source.at is not None}
    if not sources:
        return why
    own = None if why.receipt is None else sources.get(why.receipt)
    return replace(
        why,
        at=why.at if why.receipt is None else times.get(why.receipt, why.at),
        facts=tuple(
            fact if fact.receipt is None or fact.at is None else replace(fact, at=times.get(fact.receipt, fact.at))
            for fact in why.facts
        ),
        mark=IMPORTED if own is not None and own.imported else None,
    )


def _last(view: LedgerView) -> Meant:
    for found in view.find_ids(RECEIPT, ""):
        if view.get_receipt(ReceiptId(found)).kind in _DECISIONS:
            return Meant(id=ReceiptId(found))
    raise NotFoundError("call or handoff", LAST)


def explain_receipt(view: LedgerView, receipt: Receipt) -> Why:
    """Return why the event of a receipt was possible, or not."""
    match receipt.body:
        case _ if call_of(receipt) is not None:
            return explain_call(view, receipt)
        case RunRelaxed() as body:
            return _explain_relaxed(view, receipt, body)
        case body if (handoff := getattr(body, "handoff", None)) is not None:
            return explain_handoff(view, view.get_handoff(HandoffId(handoff)))
        case body if (run := getattr(body, "run", None)) is not None:
            return _explain_run(view, view.get_run(RunId(run)))
        case body:
            return Why(
                verdict=WhyVerdict.RECORDED,
                answer=f"{body.kind}; nothing was requested here, so nothing was allowed, denied or held",
                kind="receipt",
                id=receipt.id,
                receipt=receipt.id,
                at=receipt.at,
                mode=receipt.mode,
                principal=None,
            )


def explain_handoff(view: LedgerView, handoff: Handoff) -> Why:
    """Return why a handoff went ahead, or not."""
    offer, body = get_offer(view, handoff)
    parent = view.get_run(handoff.parent)
    acts = list(find_acts(view, handoff))
    verdict, answer = _judged(handoff, parent, mode_of_child(offer), body, acts)
    result = Explanation(verdict=verdict, answer=answer)
    if handoff.run is not None and handoff.state in _ENDED:
        result = _explain_broken(view, view.get_run(handoff.run)) or result
    explained = replace(result, facts=(*result.facts, *_handoff_facts(view, handoff, acts)))
    hops = handoff_hops(view, handoff, result.item)
    return answer_of(view, parent, offer, explained, about=handoff.id, hops=hops)


def _judged(handoff: Handoff, parent: Run, mode: Mode, body: HandoffInitiated, acts: Acts) -> tuple[WhyVerdict, str]:
    """Return the verdict on a handoff, and the sentence that explains it."""
    who = f"{handoff.to} {ending(handoff.id)}"
    if (decisive := _decisive(handoff.state, who, acts)) is not None:
        return decisive
    if handoff.state is State.HELD and body.rule is not None:
        return WhyVerdict.HELD, f"{who} waits for somebody to {body.gate} it; rule {body.rule}"
    if handoff.state is State.HELD:
        return (
            WhyVerdict.HELD,
            f"{who} waits for somebody to approve or deny it; {name_of(parent)} held it at the offer",
        )
    if handoff.state is State.EXPIRED:
        return WhyVerdict.EXPIRED, f"nobody waits for {who} any more"
    if approvals := list(_offer_approvals(body, acts)):
        said = " and ".join(f"{one.by} approved {who} ({proof_of(one)})" for one in approvals)
        return WhyVerdict.ALLOWED, said
    taken = "" if handoff.attempt else "; nobody has taken it yet"
    grant = _grant(mode, granted=body.terms is not None, tried_out=TRIED_OUT in body.flags)
    return WhyVerdict.ALLOWED, f"{name_of(parent)} offered {who}, and nobody had to approve it; {grant}{taken}"


def _offer_approvals(body: HandoffInitiated, acts: Acts) -> Iterator[HandoffApproved | HandoffBacked]:
    """Yield the approvals of a handoff that was held at its offer. Approvals of its calls are others."""
    if body.state is State.HELD:
        for receipt, _ in acts:
            if isinstance(receipt.body, HandoffHeld):
                return
            if isinstance(receipt.body, HandoffApproved | HandoffBacked):
                yield receipt.body


def _grant(mode: Mode, *, granted: bool, tried_out: bool) -> str:
    if tried_out and not granted:
        return "it has no grant: its calls were compared with the rights above it, and nothing was enforced"
    if granted:
        return "held to its grant" if mode is Mode.ENFORCED else "its grant is only tried out: nothing was enforced"
    if mode is Mode.ENFORCED:
        return "enforced; no grant is recorded"
    # The policy's gates may be enforced nevertheless; their holds are shown with the calls.
    return "no grant: observed, so no grant, limit or constraint was enforced"


def _decisive(state: State, who: str, acts: Acts) -> tuple[WhyVerdict, str] | None:
    """Return the reason in the last act that led to a state."""
    for receipt, texts in reversed(acts):
        reason = f": {quoted(texts.get(REASON))}" if REASON in texts else ""
        match receipt.body:
            case HandoffHeld() as body if state is State.HELD:
                return WhyVerdict.HELD, f"attempt {body.attempt} at {who} stopped before a call: {body.reason}{reason}"
            case HandoffDenied() as body if state is State.DENIED:
                return WhyVerdict.DENIED, f"{body.by} denied {who}{reason}"
            case HandoffAsked() as body if state is State.ASKED:
                question = quoted(texts.get(QUESTION))
                return WhyVerdict.ASKED, f"{who} waits for an answer: {question} ({body.error}: {body.check})"
            case HandoffDeclined() as body if state is State.DECLINED:
                return WhyVerdict.DECLINED, f"{body.by} declined {who}: {body.code}{reason}"
            case HandoffCancelled() as body if state is State.CANCELLED:
                return WhyVerdict.CANCELLED, f"{body.by} withdrew {who}{reason}"
            case _:
                continue
    return None


def _handoff_facts(view: LedgerView, handoff: Handoff, acts: Acts) -> Iterator[Fact]:
    """Yield the facts about whether it was worked on."""
    offer, body = get_offer(view, handoff)
    yield from _offer_facts(offer, body, view.get_run(handoff.parent), read_texts(view, offer).get(REASON))
    if (reasoning := read_reasoning(view, offer)) is not None:
        yield Fact.of("reasoning", reasoning.sentence, offer)
    yield from _acceptances(view, handoff)
    yield from (fact for receipt, texts in acts if (fact := decision(receipt, texts)) is not None)
    if (revoked := find_revocation(view, StreamId(handoff.id))) is not None:
        yield Fact(label="revoked", text=revoked_words(revoked), receipt=revoked.receipt, at=revoked.at)


def _offer_facts(offer: Receipt, body: HandoffInitiated, parent: Run, refusal: Text | None) -> Iterator[Fact]:
    yield Fact.of("offered", f"by {name_of(parent)} · {body.relation}", offer)
    if body.state is State.HELD:
        rule = "" if body.rule is None else f" by rule {body.rule}; gate: {body.gate}"
        limit = "" if body.until is None else f"; denied after {body.until:%Y-%m-%d %H:%M}Z"
        yield Fact.of("held", f"at its offer{rule}{limit}", offer)
    if body.flags:
        yield Fact.of("flagged", ", ".join(body.flags), offer)
    if refusal is not None:
        told = f"would have been refused: {refusal.words or GONE}"
        yield Fact.of("grant", told, offer)
    if body.taint:
        named = ", ".join(ending(source) for source in body.taint)
        yield Fact.of("from outside", f"its sender knew {named}", offer)
    if body.missing:
        yield Fact(label="missing", text=f"{', '.join(body.missing)}: reported, not refused", receipt=offer.id)
    if body.unverified:
        built = ", ".join(ending(known) for known in body.unverified)
        yield Fact(label="unverified", text=f"builds on {built}, which nobody had verified", receipt=offer.id)


def _acceptances(view: LedgerView, handoff: Handoff) -> Iterator[Fact]:
    """Yield the findings of validation for each acceptance."""
    for run in view.find_attempts(handoff):
        receipt = read_receipt(view.get_receipt_at(StreamId(run.id), 1))
        if isinstance(receipt.body, HandoffAccepted):
            found = ", ".join(receipt.body.problems) or "nothing wrong"
            asks = " · would have asked" if receipt.body.would_ask else ""
            label = receipt.body.label
            tainted = " · began tainted" if label is not None and label.is_external else ""
            text = f"attempt {run.attempt} by {name_of(run)} · validation found {found}{asks}{tainted}"
            yield Fact.of("accepted", text, receipt)


def _explain_run(view: LedgerView, run: Run) -> Why:
    first = read_receipt(view.get_receipt_at(StreamId(run.id), 1))
    known = None if run.handoff is None else get_offer(view, view.get_handoff(run.handoff))[1]
    tried_out = known is not None and TRIED_OUT in known.flags
    grant = _grant(first.mode, granted=has_grant(view, run.id), tried_out=tried_out)
    facts: tuple[Fact, ...] = ()
    if run.handoff is None:
        answer = f"{run.principal} asked {name_of(run)} for it; {grant}"
    else:
        handoff = view.get_handoff(run.handoff)
        facts = tuple(_handoff_facts(view, handoff, list(find_acts(view, handoff))))
        sender = "somebody" if run.parent is None else name_of(view.get_run(run.parent))
        answer = f"{name_of(run)} is attempt {run.attempt} at the handoff from {sender}; {grant}"
    result = _explain_broken(view, run) or Explanation(verdict=WhyVerdict.ALLOWED, answer=answer)
    explained = replace(result, facts=(*result.facts, *facts, *islice(_trouble(view, run), _MOST)))
    return answer_of(view, run, first, explained, about=run.id)


def _explain_broken(view: LedgerView, run: Run) -> Explanation | None:
    return explain_result(view, run) or explain_outside(view, run)


def _trouble(view: LedgerView, run: Run) -> Iterator[Fact]:
    """Yield the calls of a run that were denied, held or flagged."""
    for call in read_calls(view, run).values():
        name = f"{call.tool} {ending(call.id)}"
        match call.outcome:
            case CallOutcome.HELD:
                yield Fact.of("held", f"{name}: {call.rule}, {call.gate}", call.receipt)
            case CallOutcome.DENIED:
                yield Fact.of("denied", f"{name}: {call.rule}", call.receipt)
            case _ if call.is_made and call.asked_flags:
                text = f"{name}: {', '.join(call.asked_flags)}"
                yield Fact.of("flagged", text, call.receipt)
            case _:
                continue


def _explain_relaxed(view: LedgerView, receipt: Receipt, body: RunRelaxed) -> Why:
    run = view.get_run(body.run)
    reason = read_texts(view, receipt).get(REASON)
    right = "whose right to do so is not recorded"
    if body.by == run.principal:
        right = "who is the principal"
    elif (item := find_item(view, body.item)) is not None and body.by == item[1]:
        right = "who had set it"
    explained = Explanation(
        verdict=WhyVerdict.ALLOWED,
        answer=f"{body.by}, {right}, released {name_of(run)} from it: {quoted(reason)}",
        facts=(Fact.of("released", f"from {body.item}", receipt),),
        item=body.item,
    )
    return answer_of(view, run, receipt, explained, about=receipt.id)
