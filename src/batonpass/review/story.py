"""The story of a tree in prose, from receipts alone: the wish, the work of each agent, the findings, the open ends."""

from collections.abc import Iterator, Sequence

from batonpass.model.base.content_names import INTENT
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Handoff, RunState
from batonpass.records.call import CallOutcome, CallRecord
from batonpass.records.handoff import OPEN, Standing, standing_of
from batonpass.review.finding import Finding, Severity
from batonpass.review.kinds.phrases import listed, quoted, times
from batonpass.review.reviewed_tree import ReviewedTree

_ENDS = {
    RunState.OPEN: "has no end yet",
    RunState.COMPLETED: "came to its end",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "was cancelled",
    RunState.LAPSED: "was lost with its process",
    RunState.SUSPENDED: "waits for somebody",
    RunState.EXPIRED: "ran out of time",
}


def tell_story(tree: ReviewedTree, findings: tuple[Finding, ...]) -> Iterator[str]:
    """Yield the paragraphs of the story."""
    root = tree.runs[tree.root]
    wanted = tree.words(tree.opening(root.id), INTENT)
    words = f"wanted: {quoted(wanted)}" if wanted else "gave words that are erased now"
    yield (
        f"{root.principal} {words}. {root.agent} took it on at {root.started_at:%Y-%m-%d %H:%M} UTC and "
        f"{_ENDS[root.state]}. It handed off {times(len(tree.children.get(root.id, ())), 'task')}; in the whole tree "
        f"there were {times(len(tree.handoffs), 'handoff')} and {times(len(tree.calls), 'call')}."
    )
    if calls := tree.calls_of.get(root.id):
        yield f"{root.agent} itself {_did(tree, calls)}."
    for handoff in tree.handoffs.values():
        yield " ".join(_tell(tree, handoff))
    grave = [one for one in findings if one.severity is not Severity.LOW]
    if grave:
        yield "What a person should look at, the worst first: " + "; ".join(_gathered(grave)) + "."
    yield _left_open(tree)


def _gathered(findings: list[Finding]) -> Iterator[str]:
    """Yield the first finding of each kind, and who has more of the same: a page has no room for all."""
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.kind.code, []).append(finding)
    for first, *more in kinds.values():
        also = f" (and {len(more)} more of that kind: {listed(one.agent for one in more)})" if more else ""
        yield f"{first.sentence}{also}"


def _tell(tree: ReviewedTree, handoff: Handoff) -> Iterator[str]:
    runs = tree.attempts.get(handoff.id, ())
    agent = runs[-1].agent if runs else handoff.to
    sender = tree.runs[handoff.parent].agent
    yield f"{sender} asked {agent} to {quoted(tree.task(handoff.id) or 'erased')}."
    if not runs:
        yield from _ruled(tree, handoff)
        yield f"Nobody began: it is {handoff.state}."
        return
    yield from _ruled(tree, handoff)
    calls = [call for run in runs for call in tree.calls_of.get(run.id, ())]
    again = f" in {times(len(runs), 'attempt')}" if len(runs) > 1 else ""
    yield f"{agent}{again} {_did(tree, calls)}." if calls else f"{agent}{again} made no calls."
    report = tree.report(runs[-1].id)
    if report is not None and report.result:
        yield f"It reported {quoted(report.result)}."
    yield _came_to(tree, handoff)


def _ruled(tree: ReviewedTree, handoff: Handoff) -> Iterator[str]:
    """Yield the rulings on a handoff and on its calls, where they were held."""
    for hold in tree.holds:
        run = hold.hold.run
        if handoff.id not in {hold.hold.handoff, None if run is None else tree.runs[run].handoff}:
            continue
        what = "It" if hold.hold.call is None else "A call of it"
        ruled = [f"{one.by} {'approved' if one.is_for else 'denied'}" for one in hold.approvals]
        yield f"{what} was held; {listed(ruled) if ruled else 'nobody has decided yet'}."


def _did(tree: ReviewedTree, calls: Sequence[CallRecord]) -> str:
    made = [call for call in calls if call.is_made]
    parts = [f"made {times(len(made), 'call')} ({listed(call.tool for call in made)})" if made else "made no call"]
    for outcome, words in (
        (CallOutcome.FAILED, "failed"),
        (CallOutcome.DENIED, "denied"),
        (CallOutcome.HELD, "held"),
    ):
        if of_them := [call.tool for call in calls if call.outcome is outcome]:
            parts.append(f"{times(len(of_them), 'call')} {words} ({listed(of_them)})")
    files = len(tree.changed_files(calls))
    return ", ".join([*parts, *([f"{times(files, 'file')} changed"] if files else [])])


def _came_to(tree: ReviewedTree, handoff: Handoff) -> str:
    if handoff.state is State.COMPLETED:
        return "Nobody has verified that."
    verdicts = tree.verdicts(handoff.id, handoff.attempt)
    judged = next((one for one in verdicts if one.standing is not Standing.UNVERIFIED), None)
    if judged is not None and handoff.state in {State.VERIFIED, State.REFUTED}:
        return f"{judged.body.by} {standing_of(verdicts)} that."
    return f"It is {handoff.state}."


def _left_open(tree: ReviewedTree) -> str:
    waiting = [handoff for handoff in tree.handoffs.values() if handoff.state in OPEN]
    doubts = [call for call in tree.calls.values() if call.in_doubt]
    unverified = [handoff for handoff in tree.handoffs.values() if handoff.state is State.COMPLETED]
    parts = [f"{times(len(waiting), 'handoff')} not over ({listed(one.to for one in waiting)})"] if waiting else []
    parts += [f"{times(len(doubts), 'call')} in doubt ({listed(one.tool for one in doubts)})"] if doubts else []
    parts += [f"{times(len(unverified), 'result')} that nobody verified"] if unverified else []
    return f"Still open: {', '.join(parts)}." if parts else "Nothing is left open."
