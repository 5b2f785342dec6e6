"""Findings about work: whether it was done, as it was asked for, and to the end."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from batonpass.accounts.why.constraint_checks import Checked, find_broken
from batonpass.handoff.calls.unexplained import UNEXPLAINED
from batonpass.handoff.runtime.claimed_outputs import NOT_RECORDED, NOT_TOUCHED
from batonpass.handoff.transfer.close import SENDER_DONE
from batonpass.model.base.content_names import REASON, UNRECORDED, UNTOUCHED
from batonpass.model.base.lifecycle import State
from batonpass.model.bodies.body import HandoffCancelled, HandoffLate, Outcome, RunClosed
from batonpass.model.ledger.run import Handoff, Run, RunState
from batonpass.records.call import CallOutcome
from batonpass.records.handoff import Standing, standing_of
from batonpass.records.text import names_in
from batonpass.review.finding import Finding, FindingKind, Severity
from batonpass.review.kinds.phrases import listed, quoted, times
from batonpass.review.reviewed_tree import Closing, ReviewedTree

GHOST_TASK: Final = FindingKind(
    code="ghost-task",
    title="Ghost task",
    severity=Severity.HIGH,
    matters="Work is called done, and nothing in the record shows that anybody did it.",
    mast="2.3",
    owasp="ASI08",
)
UNEXPLAINED_CHANGE: Final = FindingKind(
    code="unexplained-change",
    title="Unexplained change",
    severity=Severity.MEDIUM,
    matters="Files changed while an agent worked, and no recorded call changed them.",
    owasp="ASI10",
)
PREMATURE_END: Final = FindingKind(
    code="premature-end",
    title="Premature end",
    severity=Severity.MEDIUM,
    matters="A run called its work done while something that it depends on was still open.",
    mast="3.1",
    owasp="ASI08",
)
UNCLOSED_RUN: Final = FindingKind(
    code="unclosed-run",
    title="Unclosed run",
    severity=Severity.MEDIUM,
    matters="Nobody knows whether a run is finished: it has no close-out, and nobody above it waits any more.",
    mast="3.1",
)
DISOBEYED_TASK: Final = FindingKind(
    code="disobeyed-task",
    title="Disobeyed task",
    severity=Severity.HIGH,
    matters="A call or a result breaks a constraint that its agent had been given.",
    mast="1.1",
    owasp="ASI02",
)
DISOBEYED_ROLE: Final = FindingKind(
    code="disobeyed-role",
    title="Disobeyed role",
    severity=Severity.MEDIUM,
    matters="Whoever has to judge work changed it, so nobody has judged it.",
    mast="1.2",
)
IGNORED_STOP: Final = FindingKind(
    code="ignored-stop",
    title="Ignored stop condition",
    severity=Severity.MEDIUM,
    matters="An agent went on after its limit, its deadline or its end.",
    mast="1.5",
    owasp="ASI10",
)

_GOES_ON: Final = frozenset({RunState.OPEN, RunState.SUSPENDED})
_ABANDONED_AFTER: Final = timedelta(days=1)
_CONSTRAINT: Final = frozenset({"would_deny.constraint", "result.constraint"})
_JUDGES: Final = frozenset({"reviewer", "verifier", "auditor", "critic", "judge"})
_STOPS: Final = frozenset({"limit", "budget", "deadline"})
_WOULD_STOP: Final = frozenset({("would_deny", "budget"), ("would_deny", "deadline")})  # a limit is part of a grant
_STUBBORN: Final = 3  # who is told to stop once, and does, has obeyed


def find_ghost_tasks(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the deliveries whose expected targets nobody touched, whose files nobody made, or that left no trace."""
    for run in tree.runs.values():
        closing = tree.closing(run.id)
        if closing is None or not closing.delivered or run.handoff is None or run.handoff not in tree.handoffs:
            continue
        verdicts = tree.verdicts(run.handoff, run.attempt)
        others = [verdict for verdict in verdicts if not getattr(verdict.body, "by_producer", False)]
        if standing_of(others) is Standing.VERIFIED:
            continue
        problem = _ghost(tree, run, closing)
        if problem is not None:
            yield tree.found(
                GHOST_TASK,
                tree.handoffs[run.handoff],
                f"{run.agent} says that {quoted(tree.task(run.handoff))} is done, {problem}",
                (closing.receipt, tree.offers[run.handoff][0]),
            )


def _ghost(tree: ReviewedTree, run: Run, closing: Closing) -> str | None:
    for flag, name, words in (
        (NOT_TOUCHED, UNTOUCHED, "and nobody changed"),
        (NOT_RECORDED, UNRECORDED, "and no recorded call made"),
    ):
        if flag in closing.body.flags:
            names = names_in(tree.body(closing.receipt, name) or b"")
            return f"{words} {listed(names) if names else 'what it names'}"
    idle = run.id not in tree.calls_of and run.id not in tree.children
    silent = tree.report(run.id) is None and not getattr(closing.body, "gives", ())
    kept = getattr(closing.body, "kept", 0)
    return "without a call, a report or a file" if idle and silent and not kept else None


def find_unexplained_changes(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the runs during which files changed without a recorded call."""
    for run in tree.runs.values():
        closing = tree.closing(run.id)
        if closing is not None and UNEXPLAINED in closing.body.flags:
            yield tree.found(
                UNEXPLAINED_CHANGE,
                tree.work(run.id),
                f"files changed while {run.agent} worked, and none of its calls changed them",
                (closing.receipt,),
                go_on=(f"batonpass blame --run {run.id[-8:]}",),
            )


def find_premature_ends(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the runs that ended well although a child, a hold or a blocking question of theirs was open."""
    for run in tree.runs.values():
        closing = tree.closing(run.id)
        if closing is None or not _ended_well(closing):
            continue
        # A call or handoff that waited then may be decided now. That it was open at the end is what counts.
        waiting = [*closing.body.waiting, *getattr(closing.body, "waiting_calls", ())]
        report = tree.report(run.id)
        blocking = [] if report is None else [one.text for one in report.open_questions if one.blocking]
        dropped = [*_dropped(tree, run)]
        begun = [one for one in dropped if one.id in tree.attempts]
        if waiting or blocking or dropped:
            still = [f"{times(len(waiting), 'thing')} waited for somebody"] if waiting else []
            still += [f"it asked {quoted(blocking[0])}"] if blocking else []
            idle = [one for one in dropped if one not in begun]
            still += [f"{listed(one.to for one in begun)} worked on what it had handed off"] if begun else []
            still += [f"{listed(one.to for one in idle)} had not begun what it had handed off"] if idle else []
            yield tree.found(
                PREMATURE_END,
                tree.work(run.id),
                f"{run.agent} ended as completed while {' and '.join(still)}",
                (closing.receipt, *(tree.offers[one.id][0] for one in dropped)),
            )


def _dropped(tree: ReviewedTree, run: Run) -> Iterator[Handoff]:
    """Yield the handoffs of a run that nobody had ended, and that its end withdrew."""
    for handoff in tree.children.get(run.id, ()):
        if handoff.state is not State.CANCELLED:
            continue
        for receipt in tree.acts(handoff.id):
            if isinstance(receipt.body, HandoffCancelled) and tree.words(receipt, REASON) == SENDER_DONE:
                yield handoff


def _ended_well(closing: Closing) -> bool:
    return closing.delivered or (isinstance(closing.body, RunClosed) and closing.body.outcome is Outcome.COMPLETED)


def find_unclosed_runs(tree: ReviewedTree, now: datetime) -> Iterator[Finding]:
    """Yield the open runs below one that is over, and open roots of which nothing was heard for a day."""
    for run in tree.runs.values():
        if run.state is not RunState.OPEN:
            continue
        last = tree.streams[run.id][-1]
        over = next((above for above in tree.lineage(run.id) if above.state not in _GOES_ON), None)
        if over is not None:
            sentence = f"{run.agent} has no end, and {over.agent} above it is {over.state}"
            proof = [last, tree.streams[over.id][-1]]
        elif run.parent is None and (silence := now - _latest(tree)) > _ABANDONED_AFTER:
            sentence = f"{run.agent} has no end, and nothing was recorded for {times(silence.days, 'day')}"
            proof = [last]
        else:
            continue
        yield tree.found(UNCLOSED_RUN, run, sentence, proof)


def _latest(tree: ReviewedTree) -> datetime:
    return max(receipt.at for receipt in tree.receipts)


def find_disobeyed_tasks(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the calls and results that break a typed constraint."""
    for run in tree.runs:  # also those without a call: a result alone can break a constraint
        broken = [c for c in tree.calls_of.get(run, ()) if c.is_made and not _CONSTRAINT.isdisjoint(c.flags)]
        closing = tree.closing(run)
        result = closing if closing is not None and not _CONSTRAINT.isdisjoint(closing.body.flags) else None
        if not broken and result is None:
            continue
        receipts = [*(call.receipt for call in broken), *([] if result is None else [result.receipt])]
        known = [one for one in find_broken(tree.view, tree.runs[run], tree.streams[run]) if one.check is not None]
        against = listed(f"{_sentence(one)} ({one.where}: {one.found})" for one in known)
        yield tree.found(
            DISOBEYED_TASK,
            tree.work(run),
            f"{tree.runs[run].agent} broke a constraint: {against or 'which one can no longer be read'}",
            receipts,
            calls=broken,
            go_on=tuple(f"batonpass why {call.id[-8:]}" for call in broken[:1]),
        )


def _sentence(checked: Checked) -> str:
    return "" if checked.check is None else checked.check.constraint.sentence


def find_disobeyed_roles(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield the reviewers, verifiers and the like that changed files themselves."""
    for handoff in tree.handoffs:
        role = (tree.brief(handoff).role or "").casefold().strip()
        if role not in _JUDGES:
            continue
        for run in tree.attempts.get(handoff, ()):
            wrote = [call for call in tree.calls_of.get(run.id, ()) if call.changes]
            if wrote:
                yield tree.found(
                    DISOBEYED_ROLE,
                    tree.handoffs[handoff],
                    f"{run.agent} had the role {role} and changed files with {listed(call.tool for call in wrote)}",
                    (call.receipt for call in wrote),
                    calls=wrote,
                )


def find_ignored_stops(tree: ReviewedTree) -> Iterator[Finding]:
    """Yield runs that went on past a budget or a deadline, and outcomes that came after the end."""
    for run, calls in tree.calls_of.items():
        past = [call for call in calls if call.is_made and not _WOULD_STOP.isdisjoint(call.would)]
        if past:
            rule = next(rule for what, rule in past[0].would if (what, rule) in _WOULD_STOP)
            yield tree.found(
                IGNORED_STOP,
                tree.work(run),
                f"{tree.runs[run].agent} made {times(len(past), 'call')} after its {rule} was used up",
                (call.receipt for call in past),
                calls=past,
            )
        stopped = [call for call in calls if call.outcome is CallOutcome.DENIED and call.rule in _STOPS]
        if len(stopped) >= _STUBBORN:
            yield tree.found(
                IGNORED_STOP,
                tree.work(run),
                f"{tree.runs[run].agent} went on {times(len(stopped), 'time')} after its {stopped[0].rule} was reached",
                (call.receipt for call in stopped),
            )
    for handoff in tree.handoffs.values():
        late = [receipt for receipt in tree.acts(handoff.id) if isinstance(receipt.body, HandoffLate)]
        if late:
            yield tree.found(
                IGNORED_STOP,
                handoff,
                f"an attempt went on after it was over: {times(len(late), 'outcome')} came late",
                late,
            )
