"""Close a run with its last receipt, and end handoffs from above: withdraw, expire, lapse, cancel.

A close withdraws the handoffs of the run that are not over, because nobody waits for their results any more. Work that
waits for a person outlives a completed run: the person may come back long after it.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Final

from msgspec import structs

from batonpass.errors import (
    AttemptsExhaustedError,
    ConstraintViolatedError,
    IllegalTransitionError,
    IncompleteReportError,
    NotFoundError,
    StreamClosedError,
    UnverifiedError,
)
from batonpass.guard.baton.gaps import report_gaps, required_parts
from batonpass.guard.constraints.constraints import find_broken_by_result
from batonpass.guard.policy.unverified_results import require_verified
from batonpass.handoff.calls.unexplained import find_unexplained, list_unexplained
from batonpass.handoff.history.grant_use import describe_use, read_use
from batonpass.handoff.history.written_files import OUTSIDE
from batonpass.handoff.runtime.claimed_outputs import compare
from batonpass.handoff.runtime.deadlines import is_out_of_time
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.faults import Fault
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.runtime.run_state import Holding, ref_of
from batonpass.handoff.transfer.attempt_limit import RETRIES, pause_after
from batonpass.handoff.transfer.attempt_receipts import close_out
from batonpass.handoff.transfer.free_text import scan_report
from batonpass.handoff.transfer.inputs import tell_open
from batonpass.handoff.transfer.verdict import find_unverified
from batonpass.handoff.transfer.wait import resume_above
from batonpass.ledger.position import child_head, need
from batonpass.model.base.content_names import MESSAGE, REASON, REPORT, USE
from batonpass.model.base.ids import AgentId, CallId, HandoffId, PrincipalId, RunId, StreamId
from batonpass.model.base.kinds import Mode, Relation
from batonpass.model.base.label import named_sources
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Report
from batonpass.model.bodies.body import (
    Body,
    ChildHead,
    HandoffCancelled,
    HandoffExpired,
    HandoffLapsed,
    HandoffRetried,
    Outcome,
)
from batonpass.model.ledger.content import Content
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.policy_rules import VERIFICATION, Demand
from batonpass.records.wait import find_blocker
from batonpass.store.port import LedgerView
from batonpass.wire.documents import encode_report

DEADLINE: Final = "service:deadline"  # in whose name handoffs are withdrawn that are out of time
# The reason of handoffs that are withdrawn when their sender has completed. A review recognises it in the ledger, so
# these words never change.
SENDER_DONE: Final = "whoever handed it off is done"

_WITHDRAWABLE: Final = frozenset({State.HELD, State.OFFERED, State.READY, State.CLAIMED, State.ASKED, State.RUNNING})


def close_run(
    desk: Desk,
    holding: Holding,
    outcome: Outcome = Outcome.COMPLETED,
    *,
    error: BaseException | Fault | None = None,
    over: bool = False,
    beside: tuple[Content, ...] = (),
) -> None:
    """End a run with its last receipt, and withdraw its handoffs that are not over.

    A failed attempt withdraws nothing: the next attempt takes its children up. A completed run leaves work that waits
    for a person, and lists it; a root that failed or was cancelled withdraws that too. A door adds its own contents
    with `beside`. `over` says that the agent has ended already, as in another program: then nothing refuses the close,
    and nothing is withdrawn, because the work goes on whatever we write. Raises `ConstraintViolatedError` if the result
    of an enforced run breaks a constraint, `IncompleteReportError` if its report lacks a part that the policy requires,
    and `UnverifiedError` if the policy requires verified results.
    """
    if holding.replaying:
        return
    if holding.baton is not None and holding.baton.deadline is not None:
        end_out_of_time(desk, holding, over=over)
    fill_gap(desk, holding)
    # Everything that can refuse the close comes first. A run that is refused stays open, and must not have withdrawn
    # its children already.
    refuses = holding.working.mode is Mode.ENFORCED and not over
    flags = _flags(desk, holding, refuses=refuses, over=over) if outcome is Outcome.COMPLETED else ()
    unexplained, seen = find_unexplained(desk, holding)
    differences = compare(desk, holding, (one.path for one in unexplained), completed=outcome is Outcome.COMPLETED)
    flags = (*flags, *differences.flags, *seen, *((OUTSIDE,) if holding.went_outside else ()))
    unverified: tuple[HandoffId, ...] = ()
    children: tuple[ChildHead, ...] = ()
    waiting: tuple[HandoffId, ...] = ()
    # A failed attempt leaves its children to the next attempt, which finds them again by key.
    withdraws = not over and (outcome is Outcome.COMPLETED or holding.working.run.parent is None)
    if holding.handed_off or holding.unsure_offers or holding.resumed:
        if outcome is Outcome.COMPLETED:
            with desk.store.view() as view:
                unverified = tuple(find_unverified(view, holding.watched))
            flags = (*flags, *_demand_verified(desk, holding, unverified, refuses=not over))
        if withdraws:
            waiting = _withdraw_all(desk, holding, outcome)
        children = _children(desk, holding)
    if holding.report is not None and holding.baton is not None:
        _scan(desk, holding, holding.report)
    contents = [] if holding.report is None else [_reported(desk, holding, holding.report)]
    fault, again = _fault(desk, holding, outcome, error)
    if fault is not None and fault.words:
        contents.append(desk.text(MESSAGE, fault.words))
    contents += (*_used(desk, holding), *differences.contents)
    if unexplained:
        contents.append(list_unexplained(desk, unexplained))
    try:
        # Under the lock: the last receipt names every source that has reached the run, and none can arrive in between.
        with holding.taint.lock:
            body = close_out(
                holding.working.run,
                outcome,
                children,
                effects=tuple(holding.effects),
                unverified=unverified,
                keeps=tuple(dict.fromkeys(holding.kept)),
                gives=tuple(map(ref_of, holding.found())),
                flags=flags,
                error=None if fault is None else fault.code,
                label=holding.taint.label,
                taint=named_sources(holding.id, holding.taint.entered),
                waiting=waiting,
                waiting_calls=_undecided(desk, holding) if holding.held or holding.resumption.held else (),
            )
            holding.ended = desk.recording.end(holding.working, body, (*contents, *beside), again=again)
    finally:
        _withdraw_late(desk, holding.agent, holding.unsure_offers if withdraws else ())
    desk.files.unwatch(holding.id)
    _tell_others(desk, holding, outcome)


def _tell_others(desk: Desk, holding: Holding, outcome: Outcome) -> None:
    """Tell those who build on an earlier version that this attempt may have redone it; resume who waits for it."""
    run = holding.working.run
    if outcome is Outcome.COMPLETED and run.attempt > 1:
        tell_open(desk, holding.root, by=f"agent:{holding.agent}")
    # Only a handoff that a worker carries is waited for without anybody waiting, and never by a root.
    if holding.lease is not None and run.handoff is not None and run.parent != run.root:
        resume_above(desk, run.handoff)


def _fault(
    desk: Desk, holding: Holding, outcome: Outcome, error: BaseException | Fault | None
) -> tuple[Fault | None, HandoffRetried | None]:
    """Return why a run failed, and the retry that follows by itself; None if there is none."""
    if holding.attempts_allowed is not None and outcome is Outcome.FAILED and isinstance(error, Exception):
        return _tried_again(desk, holding, error)
    return Fault.of(error) if isinstance(error, BaseException) else error, None


def _tried_again(desk: Desk, holding: Holding, error: Exception) -> tuple[Fault, HandoffRetried | None]:
    """Return the fault of a run whose offer has a retry rule, and the retry if one is left.

    After the last attempt nobody will take up its handoffs, so they are withdrawn.
    """
    run, allowed = holding.working.run, holding.attempts_allowed
    if run.handoff is None or allowed is None:
        return Fault.of(error), None
    if run.attempt < allowed:
        holding.tried_again_after = pause = pause_after(run.attempt)
        if holding.lease is not None:
            desk.store.postpone(run.handoff, pause)  # before it can be claimed
        return Fault.of(error), HandoffRetried(handoff=run.handoff, by=PrincipalId(RETRIES))
    for handoff in _handed_off(desk, holding):
        withdraw(desk, handoff, by=RETRIES, reason="the last attempt of its parent has failed")
    words = f"{type(error).__name__}: {error}"
    exhausted = Fault.of(AttemptsExhaustedError(run.handoff, run.attempt, words))
    return structs.replace(exhausted, words=f"{exhausted.words}\n{Fault.of(error).words}"), None


def _withdraw_all(desk: Desk, holding: Holding, outcome: Outcome) -> tuple[HandoffId, ...]:
    """Withdraw the handoffs of a run that ends; return those that stay because somebody has to decide about them."""
    waiting = []
    for handoff in _handed_off(desk, holding):
        if outcome is Outcome.COMPLETED:
            with desk.store.view() as view:
                stays = find_blocker(view, view.get_handoff(handoff)) is not None
            if stays:
                waiting.append(handoff)
                continue
        withdraw(desk, handoff, by=f"agent:{holding.agent}", reason=SENDER_DONE)
    return tuple(waiting)


def _withdraw_late(desk: Desk, agent: AgentId, unsure: Collection[HandoffId]) -> None:
    """Withdraw offers that reached the store after we had looked: a server may commit an offer that was given up here.

    After the last receipt of the run, none can come any more.
    """
    for handoff in unsure:
        with suppress(NotFoundError):
            withdraw(desk, handoff, by=f"agent:{agent}", reason=SENDER_DONE)


def _undecided(desk: Desk, holding: Holding) -> tuple[CallId, ...]:
    """Return the held calls of a run that nobody has decided about."""
    with desk.store.view() as view:
        return tuple(held.call for held in view.find_waiting_calls() if held.run == holding.id)


def _scan(desk: Desk, holding: Holding, report: Report) -> None:
    """Scan a report where the policy says so, and record the findings, before the report is delivered."""
    handoff = holding.working.run.handoff
    if handoff is None or not desk.policy_with(holding.own_policy).sanitize_context:
        return
    scan = scan_report(desk, report)
    if scan.found:
        desk.recording.record(holding.working, scan.body(handoff, holding.id))


def _reported(desk: Desk, holding: Holding, report: Report) -> Content:
    role, phase = holding.work
    return desk.json(REPORT, encode_report(report, role=role, phase=phase))


def check_report(desk: Desk, holding: Holding, *, refuses: bool = True) -> tuple[str, ...]:
    """Return a flag for each part of a report that has only placeholders, or that the policy requires.

    Raises `IncompleteReportError` if the policy requires it and that may refuse.
    """
    policy = desk.policy_with(holding.own_policy)
    required = required_parts(Relation.WORKER_TO_LEAD, policy) if policy.require else ()
    if holding.report is None and not required:
        return ()
    task = "" if holding.baton is None else holding.baton.task
    missing, hollow = report_gaps(holding.report, task, holding.found(), required)
    if missing and refuses:
        raise IncompleteReportError(missing)
    # Flags of a door may name the same part.
    return tuple(f"gap.{part}" for part in sorted({*missing, *hollow}) if f"gap.{part}" not in holding.flags)


def _demand_verified(
    desk: Desk, holding: Holding, unverified: tuple[HandoffId, ...], *, refuses: bool
) -> tuple[str, ...]:
    """Apply the policy to reports that build on unverified results. Raises `UnverifiedError`."""
    if refuses:
        require_verified(unverified, desk.policy_with(holding.own_policy))
    if not unverified or holding.baton is None:
        return ()
    demand = desk.gates.requirements[Relation.WORKER_TO_LEAD].verification
    if demand is Demand.REFUSE and refuses:
        raise UnverifiedError(unverified)
    return () if demand is Demand.NONE else (f"would_deny.{VERIFICATION}.{Relation.WORKER_TO_LEAD}",)


def _used(desk: Desk, holding: Holding) -> Iterator[Content]:
    """Yield the use of a run's grant and its refused calls, as content; nothing for a run without a grant."""
    if not holding.bounds.chain:
        return
    use = holding.use
    if holding.resumed:
        # Another process worked on it before, and its counts are only in the record.
        with desk.store.view() as view:
            use = read_use(view, holding.id, lambda path: desk.resolve(str(desk.files.root / path)))
    yield desk.json(USE, describe_use(holding.bounds.chain[-1].said, use))


def _flags(desk: Desk, holding: Holding, *, refuses: bool, over: bool) -> tuple[str, ...]:
    """Return flags about a result. Raises `ConstraintViolatedError` if it breaks a constraint and that may refuse."""
    flags = [] if holding.report is None else [*holding.flags]
    # Nothing to check without a report, unless a policy requires one.
    asked = holding.report is not None or holding.own_policy is not None or desk.gates.handoffs.require
    flags += check_report(desk, holding, refuses=not over) if asked and holding.baton is not None else ()
    if holding.report is not None and holding.report.value is not None:
        for broken in find_broken_by_result(holding.constraints, json.loads(holding.report.value)):
            if refuses:
                raise ConstraintViolatedError(broken.constraint.sentence, broken.found)
            flags.append("would_deny.constraint")
    return tuple(dict.fromkeys(flags))


def withdraw(desk: Desk, handoff: HandoffId, *, by: str, reason: str) -> None:
    """Cancel a handoff that is not over, and every handoff below it, whether it works or waits for somebody."""
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
    try:
        if known.state in _WITHDRAWABLE:
            cancel_handoff(desk, handoff, by=by, reason=reason)
    except IllegalTransitionError:
        # It ended, or was answered, in the meantime. Look again: only if it is still not over, try once more.
        with desk.store.view() as view:
            if view.get_handoff(handoff).state in _WITHDRAWABLE:
                withdraw(desk, handoff, by=by, reason=reason)
                return
    withdraw_below(desk, known, by=by, reason=reason)


def withdraw_below(desk: Desk, handoff: Handoff, *, by: str, reason: str) -> None:
    """Withdraw every handoff that the attempts at this one made and that is not over."""
    for child in _handed_off_by_attempts(desk, handoff):
        withdraw(desk, child, by=by, reason=reason)


def expire(desk: Desk, handoff: HandoffId, *, reason: str = "its deadline has passed") -> None:
    """Record that a handoff has expired; a run that works on it is fenced."""
    desk.recording.act(
        handoff,
        lambda _, ended: HandoffExpired(handoff=handoff, ended=ended),
        (desk.text(REASON, reason),),
    )


def end_overdue(desk: Desk, handoff: HandoffId) -> None:
    """End a handoff whose deadline has passed, and everything below it, unless somebody else has just done so."""
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
    with suppress(IllegalTransitionError):
        expire(desk, handoff)
    withdraw_below(desk, known, by=DEADLINE, reason="the deadline of the handoff above it has passed")


def end_out_of_time(desk: Desk, holding: Holding, *, over: bool = False) -> None:
    """End the handoff of a run that is out of time, unless its agent has ended already. Raises `StreamClosedError`."""
    baton = holding.baton
    if baton is not None and baton.deadline is not None and not over and is_out_of_time(desk, holding):
        end_overdue(desk, baton.handoff)
        raise StreamClosedError(holding.id)


def lapse(desk: Desk, handoff: HandoffId) -> None:
    """Record that the lease of a worker ran out before its attempt ended; its run is fenced."""
    desk.recording.act(
        handoff, lambda known, ended: HandoffLapsed(handoff=handoff, attempt=known.attempt, ended=need(ended, known))
    )


def cancel_handoff(desk: Desk, handoff: HandoffId, *, by: str, reason: str, beside: tuple[Content, ...] = ()) -> None:
    """Cancel one handoff, and nothing below it; a run that works on it is fenced."""
    principal = PrincipalId(by)

    def cancelled(_: Handoff, ended: ChildHead | None) -> Body:
        return HandoffCancelled(handoff=handoff, by=principal, ended=ended)

    desk.recording.act(handoff, cancelled, (desk.text(REASON, reason), *beside))


def _handed_off_by_attempts(desk: Desk, handoff: Handoff) -> list[HandoffId]:
    if handoff.attempt == 0:
        return []
    with desk.store.view() as view:
        return [child.id for run in view.find_attempts(handoff) for child in view.find_handoffs(parent=run.id)]


def _handed_off(desk: Desk, holding: Holding) -> list[HandoffId]:
    """Return the handoffs of a run, and those that it took up again, oldest first.

    The store is asked: an interrupted offer may be durable without anybody here knowing it, and workers would run it.
    """
    with desk.store.view() as view:
        made = {handoff.id for handoff in view.find_handoffs(parent=holding.id)}
    return sorted(made | holding.handed_off)


def _children(desk: Desk, holding: Holding) -> tuple[ChildHead, ...]:
    """Return the heads of all child runs: of handoffs that a run made, and of those that it took up again."""
    with desk.store.view() as view:
        runs = {child.id for child in view.find_runs(parent=holding.id)}
        runs.update(_adopted(view, holding))
        return tuple(child_head(view.get_stream(StreamId(run))) for run in sorted(runs))


def _adopted(view: LedgerView, holding: Holding) -> Iterator[RunId]:
    for handoff in holding.handed_off:
        known = view.get_handoff(handoff)
        if known.parent != holding.id and known.run is not None:
            yield known.run
