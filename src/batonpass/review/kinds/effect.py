"""Findings about effects: those in doubt, those that happened twice, and calls that were not written down."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from batonpass.model.base.content_names import ARGUMENTS, TARGET
from batonpass.model.bodies.body import RunGap, Settlement
from batonpass.model.policy.policy_rules import Tier
from batonpass.records.call import CallOutcome, CallRecord
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import listed, quoted, times
from batonpass.review.reviewed_tree import ReviewedTree

EFFECT_IN_DOUBT: Final = FindingKind(
    code="effect-in-doubt",
    title="Effect in doubt",
    severity=Severity.HIGH,
    matters="A call was begun and nobody knows whether it took effect: repeating it may do it twice.",
    owasp="ASI08",
)
DOUBLED_EFFECT: Final = FindingKind(
    code="doubled-effect",
    title="Doubled effect",
    severity=Severity.HIGH,
    matters="The same call was made again in another attempt or by another agent, so it took effect twice.",
    mast="1.3",
    owasp="ASI08",
)
RECORD_GAP: Final = FindingKind(
    code="record-gap",
    title="Gap in the record",
    severity=Severity.MEDIUM,
    matters="Calls were made while nothing could be written, so the record does not say what they did.",
)


def find_effects_in_doubt(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the calls whose outcome can no longer come, and about which nobody has decided."""
    for call in tree.calls.values():
        if call.in_doubt:
            target = tree.words(call.receipt, TARGET)
            on = f" on {quoted(target)}" if target else ""
            handoff = tree.runs[call.run].handoff
            settle = "run" if handoff is None else "handoff"
            yield tree.found(
                EFFECT_IN_DOUBT,
                call,
                f"nobody knows whether {call.tool}{on} by {tree.runs[call.run].agent} took effect",
                (call.receipt,),
                calls=(call,),
                go_on=(f"batonpass {settle} settle --help", f"batonpass why {call.id[-8:]}"),
            )


def find_doubled_effects(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the calls that two attempts or two agents made with the same tool and arguments, without being told to."""
    yield from _twice_by_agents(tree)
    for handoff, runs in tree.attempts.items():
        if len(runs) < 2:  # noqa: PLR2004 - one attempt repeats nobody
            continue
        made: dict[tuple[str, bytes], list[CallRecord]] = defaultdict(list)
        for run in runs:
            for call in tree.calls_of.get(run.id, ()):
                if _took_effect(call) and (body := tree.body(call.receipt, ARGUMENTS)) is not None:
                    made[call.tool, body].append(call)
        for same in made.values():
            if len({call.run for call in same}) > 1:
                yield tree.found(
                    DOUBLED_EFFECT,
                    tree.handoffs[handoff],
                    f"{same[0].tool} took effect in {times(len({call.run for call in same}), 'attempt')}, "
                    "with the same arguments",
                    (call.receipt for call in same),
                    calls=same,
                )


def _twice_by_agents(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the calls that cannot be undone and that several handoffs made, each of its own accord."""
    made: dict[tuple[str, bytes], dict[str, CallRecord]] = defaultdict(dict)
    lasting = [call for call in tree.calls.values() if _took_effect(call) and Tier.IRREVERSIBLE in call.tiers]
    tree.read_ahead((call.receipt for call in lasting), ARGUMENTS)
    for call in lasting:
        if (body := tree.body(call.receipt, ARGUMENTS)) is not None:
            made[call.tool, body].setdefault(tree.work(call.run).id, call)
    for (tool, _), same in made.items():
        if len(same) > 1:
            calls = [*same.values()]
            agents = listed(tree.runs[call.run].agent for call in calls)
            yield tree.found(
                DOUBLED_EFFECT,
                calls[-1],
                f"{tool} took effect {len(calls)} times with the same arguments, by {agents}",
                (call.receipt for call in calls),
                calls=calls,
            )


def _took_effect(call: CallRecord) -> bool:
    if call.reads or call.idempotent or call.settlement is Settlement.REPEAT:
        return False
    return call.outcome is CallOutcome.COMPLETED


def find_record_gaps(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the runs whose record says that calls are missing from it."""
    for receipt in tree.receipts:
        if isinstance(receipt.body, RunGap):
            run = tree.runs[receipt.body.run]
            yield tree.found(
                RECORD_GAP,
                tree.work(run.id),
                f"{times(receipt.body.calls, 'call')} of {run.agent} could not be recorded",
                (receipt,),
            )
