"""Suspects of a failed tree: who may have caused it, with reasons. They are candidates, not verdicts."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from batonpass.model.base.ids import AgentId, CallId, HandoffId, ReceiptId, RunId
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import RunRecorded
from batonpass.model.ledger.run import RunState
from batonpass.records.call import CallOutcome
from batonpass.records.handoff import Standing, standing_of
from batonpass.review.finding import Finding, Severity
from batonpass.review.kinds import approval, effect, scope, state, work
from batonpass.review.kinds.phrases import listed, quoted
from batonpass.review.reviewed_tree import ReviewedTree

# How much each reason says. A deviation from what was ordered says most; being there when it broke says least.
_WEIGHTS: Final = {
    work.DISOBEYED_TASK.code: 8,
    state.LOST_CONSTRAINT.code: 8,
    work.GHOST_TASK.code: 6,
    state.UNANSWERED_QUESTION.code: 5,
    effect.EFFECT_IN_DOUBT.code: 4,
    work.PREMATURE_END.code: 4,
    state.RETRIED_PATH.code: 4,
    state.ABRIDGED_STATE.code: 3,
}
_OF_OTHERS: Final = frozenset(
    kind.code
    for kind in (
        approval.APPROVAL_THEATRE,
        approval.APPROVAL_HABIT,
        approval.UNPROVEN_APPROVAL,
        approval.SHARED_CREDENTIAL,
        scope.WIDE_GRANT,
    )
)
_OTHER: Final = 2
_VICTIM: Final = 1  # who stands on a refuted result was misled by it
_REFUTED: Final = 10
_FIRST: Final = 3  # the first deviation counts more than those that follow from it
_FIRST_ERROR: Final = 4
_UNVERIFIED: Final = 2
_BEFORE: Final = 1
_WITHHELD: Final = 4


class Reason(Struct, frozen=True, kw_only=True):
    """One reason to suspect somebody."""

    words: str
    weight: int
    receipts: tuple[ReceiptId, ...]


ToldReason: TypeAlias = tuple[AgentId, RunId | HandoffId, Reason]


class Suspect(Struct, frozen=True, kw_only=True):
    """One agent at one step, and why it may have caused the failure."""

    agent: AgentId
    step: RunId | HandoffId
    reasons: tuple[Reason, ...]

    @property
    def weight(self) -> int:
        """Return the sum of its reasons."""
        return sum(reason.weight for reason in self.reasons)


def find_suspects(tree: ReviewedTree, findings: tuple[Finding, ...]) -> list[Suspect]:
    """Return who may have caused the failure of a tree, the most suspicious first."""
    reasons: dict[tuple[AgentId, RunId | HandoffId], list[Reason]] = {}
    for agent, step, reason in (
        *_deviations(tree, findings),
        *_refuted(tree),
        *_first_error(tree),
        *_left_out(tree),
        *_used_unverified(tree),
    ):
        reasons.setdefault((agent, step), []).append(reason)
    found = [Suspect(agent=agent, step=step, reasons=tuple(why)) for (agent, step), why in reasons.items()]
    return sorted(found, key=lambda suspect: (-suspect.weight, suspect.step))


def _deviations(tree: ReviewedTree, findings: tuple[Finding, ...]) -> Iterator[ToldReason]:
    # An approval says something about who gave it, a grant about who granted it: neither about who worked under it.
    grave = [one for one in findings if _may_tell(one) and one.kind.code not in _OF_OTHERS]
    # A result that breaks a constraint may only pass on what another one broke first.
    first = min((one for one in grave if one.kind.code in _WEIGHTS), key=lambda one: (one.at, one.key), default=None)
    for finding in grave:
        step = _step(tree, finding)
        weight = _VICTIM if finding.kind is state.STALE_STATE else _WEIGHTS.get(finding.kind.code, _OTHER)
        yield finding.agent, step, Reason(words=finding.sentence, weight=weight, receipts=finding.receipts)
        if finding is first:
            words = "it was the first to deviate"
            yield finding.agent, step, Reason(words=words, weight=_FIRST, receipts=finding.receipts[:1])


def _may_tell(finding: Finding) -> bool:
    """Return whether a finding may explain a failure: a grave one, or one with a weight of its own."""
    return finding.severity is not Severity.LOW or finding.kind.code in _WEIGHTS


def _step(tree: ReviewedTree, finding: Finding) -> RunId | HandoffId:
    if finding.by is not None:
        return tree.work(finding.by).id
    call = tree.calls.get(CallId(finding.subject))
    if call is not None:
        return tree.work(call.run).id
    return RunId(finding.subject) if finding.subject in tree.runs else HandoffId(finding.subject)


def _refuted(tree: ReviewedTree) -> Iterator[ToldReason]:
    for handoff in tree.handoffs.values():
        verdicts = tree.verdicts(handoff.id, handoff.attempt)
        if standing_of(verdicts) is Standing.REFUTED:
            refuting = next(one for one in verdicts if one.standing is Standing.REFUTED)
            words = f"{refuting.body.by} refuted its result"
            agent = tree.worker(handoff)
            yield agent, handoff.id, Reason(words=words, weight=_REFUTED, receipts=(refuting.receipt.id,))


def _first_error(tree: ReviewedTree) -> Iterator[ToldReason]:
    """Yield who had the first failed call of a run that failed."""
    failed = [
        call
        for call in tree.calls.values()
        if call.outcome is CallOutcome.FAILED and tree.runs[call.run].state in {RunState.FAILED, RunState.LAPSED}
    ]
    if failed:
        first = min(failed, key=lambda call: (call.at, call.id))
        words = f"its call of {first.tool} failed first ({first.error})"
        run = tree.runs[first.run]
        yield run.agent, tree.work(run.id).id, Reason(words=words, weight=_FIRST_ERROR, receipts=(first.receipt.id,))
        ends = [end for one in tree.runs if (end := tree.closing(one)) is not None and end.delivered]
        before = max((end for end in ends if end.receipt.at <= first.at), key=lambda end: end.receipt.at, default=None)
        if before is not None:
            known = tree.runs[RunId(before.receipt.stream)]
            reason = Reason(words="it was the last step before that", weight=_BEFORE, receipts=(before.receipt.id,))
            yield known.agent, tree.work(known.id).id, reason


def _left_out(tree: ReviewedTree) -> Iterator[ToldReason]:
    """Yield who knew something and did not pass it on to an agent that failed or was refuted."""
    for handoff in tree.handoffs.values():
        if handoff.state not in {State.FAILED, State.REFUTED}:
            continue
        offer, body = tree.offers[handoff.id]
        carried = {ref.item for ref in body.carries}
        said = (receipt for receipt in tree.streams[body.run] if receipt.seq < offer.seq)
        recorded = (receipt.body for receipt in said if isinstance(receipt.body, RunRecorded))
        kept = [ref for known in recorded for ref in known.items if ref.item not in carried]
        values = [value for value, _ in tree.items(kept).values()]
        words = [str(getattr(value, "what", "") or getattr(value, "text", "")) for value in values]
        told = listed(quoted(one) for one in words if one)
        if told:
            reason = Reason(words=f"it did not tell {handoff.to}: {told}", weight=_WITHHELD, receipts=(offer.id,))
            yield tree.runs[body.run].agent, tree.work(body.run).id, reason


def _used_unverified(tree: ReviewedTree) -> Iterator[ToldReason]:
    """Yield who delivered a result that nobody verified and somebody built on."""
    for receipt, body in tree.offers.values():
        for known in body.unverified:
            handoff = tree.handoffs.get(known)
            if handoff is not None and handoff.state is State.COMPLETED:
                words = f"its result went into {quoted(tree.task(body.handoff))}, and nobody had verified it"
                agent = tree.worker(handoff)
                yield agent, handoff.id, Reason(words=words, weight=_UNVERIFIED, receipts=(receipt.id,))
