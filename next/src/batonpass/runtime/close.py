"""The end of a run: first its own last receipt, bound to its epoch, then the withdrawal of what it left.

A process that has lost its run fails at the first receipt, and so changes nothing of what the new holder does.
"""

from collections.abc import Sequence

from batonpass.errors import StoreError
from batonpass.log.append import Draft, append_shared
from batonpass.model.bodies import Body, HandoffCancelled, HandoffCompleted, HandoffFailed, RunClosed
from batonpass.model.items import Report
from batonpass.model.lifecycle import TRANSITIONS, Event, RunState, State
from batonpass.model.rows import HandoffRow
from batonpass.model.values import Outcome, RunHead
from batonpass.runtime.context import Context
from batonpass.runtime.run_state import ActiveRun
from batonpass.wire.canonical import encode

_NO_REPORT = Report()


def close(context: Context, run: ActiveRun, report: Report, error: str | None) -> Outcome:
    """End a run: its report, or why it failed, and the head of each child. `completed` is provisional.

    Children that are not settled are withdrawn, unless the run is an attempt that failed: the next one adopts them.
    """
    outcome: Outcome = "completed" if error is None else "failed"
    recorder = context.recorder
    if run.is_replayed:  # it has ended: what its process died before is made up for
        row = recorder.store.find_stream(run.id)
        outcome = "completed" if row is not None and row.state == RunState.COMPLETED else "failed"
        _withdraw_children(context, run, outcome)
        context.runs.pop(run.id, None)
        return outcome
    run.refresh(recorder)
    contents = {} if report == _NO_REPORT else {"report": encode(report)}
    if error is not None:
        contents["error"] = error.encode("utf-8", "replace")
    try:
        run.writer.append(Draft(_last_body(context, run, outcome), contents))
    except StoreError as failure:
        # An observed program goes on: its run stays open in the record, and what it offered stays offered.
        run.note_gap("close", failure)
        context.forget(run)
        return outcome
    _withdraw_children(context, run, outcome)
    context.forget(run)
    return outcome


def _withdraw_children(context: Context, run: ActiveRun, outcome: Outcome) -> None:
    if run.handoff is None or outcome == "completed":
        for handoff in tuple(run.history.children):  # other threads of the run may still be at work
            withdraw(context, run, handoff)


def _last_body(context: Context, run: ActiveRun, outcome: Outcome) -> Body:
    # Read before the commit: a head listed here means at least this far.
    rows = context.recorder.store.heads(tuple(run.history.children)) if run.history.children else ()
    children = tuple(RunHead(row.id, row.seq, row.head) for row in rows)
    if run.handoff is None or run.parent is None:
        return RunClosed(run=run.id, outcome=outcome, children=children)
    ended = HandoffCompleted if outcome == "completed" else HandoffFailed
    kept = len(run.history.earlier)
    return ended(handoff=run.handoff, parent=run.parent, attempt=run.attempt, children=children, kept=kept)


def withdraw(context: Context, run: ActiveRun, handoff: str) -> None:
    """Cancel a child that is not settled, in the epoch in which this run held its stream."""
    recorder = context.recorder

    def find_open() -> HandoffRow | None:
        row = recorder.store.find_handoff(handoff)
        return row if row is not None and (row.state, Event.CANCEL) in TRANSITIONS else None

    def cancellation() -> Sequence[Draft]:
        row = find_open()
        if row is None:
            return ()  # it has ended meanwhile
        attempt = recorder.store.find_stream(row.run or "") if row.state == State.RUNNING else None
        body = HandoffCancelled(
            handoff=handoff,
            attempt=row.attempt,
            by=run.principal,
            code="handoff.parent_closed",
            holder=run.id,
            holder_epoch=run.writer.epoch,
            ended_run=None if attempt is None else RunHead(attempt.id, attempt.seq, attempt.head),
        )
        return (Draft(body),)

    if find_open() is not None:  # most have ended, and one look tells
        append_shared(recorder, handoff, cancellation, root=run.root, mode=run.mode)
