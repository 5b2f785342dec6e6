"""The end of a run: first its own last receipt, bound to its epoch, then the withdrawal of what it left.

A process that has lost its run fails at the first receipt, and so changes nothing of what the new holder does.
"""

from collections.abc import Sequence
from contextlib import suppress

from batonpass.errors import BatonpassError, StoreError
from batonpass.log.append import Draft, append_shared
from batonpass.model.bodies import Body, HandoffCancelled, HandoffCompleted, HandoffFailed, RunClosed
from batonpass.model.items import Report
from batonpass.model.lifecycle import TRANSITIONS, Event, RunState, State
from batonpass.model.rows import HandoffRow
from batonpass.model.values import Outcome, RunHead
from batonpass.reading.history import read_attempts
from batonpass.runtime.context import Context
from batonpass.runtime.run_state import ActiveRun
from batonpass.wire.canonical import encode
from batonpass.wire.contents import Contents

_NO_REPORT = Report()


def close(context: Context, run: ActiveRun, report: Report, error: str | None) -> Outcome:
    """End a run: its report, or why it failed, and the head of each child. `completed` is provisional.

    Children that are not settled are withdrawn, unless the run is an attempt that failed: the next one adopts them.
    """
    outcome: Outcome = "completed" if error is None else "failed"
    recorder = context.recorder
    if run.is_replayed:  # it has ended: what its process died before is made up for
        return _make_up(context, run)
    run.refresh(recorder)
    contents = {} if report == _NO_REPORT else {"report": encode(report)}
    if error is not None:
        contents["error"] = error.encode("utf-8", "replace")
    try:
        _write_children(run)
        draft = Draft(_last_body(context, run, outcome), contents)
        run.writer.append(draft)
        if run.handoff is None or outcome == "completed":
            unwritten = {child.handoff for child in run.unwritten_children}
            for handoff in tuple(run.history.children):  # other threads of the run may still be at work
                if handoff not in unwritten:
                    withdraw(context, run, handoff)
    except StoreError as failure:
        _end_unrecorded(context, run, outcome, contents, failure)
    context.forget(run)
    return outcome


def _end_unrecorded(
    context: Context, run: ActiveRun, outcome: Outcome, contents: Contents, failure: StoreError
) -> None:
    """Let an observed program go on: its parent says at its own end what could not be written now."""
    if run.mode == "enforced":
        raise failure
    parent = context.runs.get(run.parent or "")
    (parent or run).note_gap(f"end of {run.agent}", failure)
    if parent is None or run.writer.is_lost:
        return
    if not run.writer.is_unsure:  # else it may stand there, and two ends are none
        run.unwritten_close = Draft(_ending(run, outcome, ()), contents)
    parent.unwritten_children.append(run)


def _write_children(run: ActiveRun) -> None:
    """Write the ends of children that could not be written when they ended."""
    for child in tuple(run.unwritten_children):
        if child.unwritten_close is not None:
            with suppress(BatonpassError):  # it stays as it is, and the gap says so
                child.writer.append(child.unwritten_close)
                run.unwritten_children.remove(child)


def _make_up(context: Context, run: ActiveRun) -> Outcome:
    """Withdraw what an ended run left: its process died between its last receipt and the last withdrawal.

    What was retried or accepted after its end was meant to go on.
    """
    store = context.recorder.store
    row = store.find_stream(run.id)
    outcome: Outcome = "completed" if row is not None and row.state == RunState.COMPLETED else "failed"
    for handoff in tuple(run.history.children) if run.handoff is None or outcome == "completed" else ():
        own, child = store.find_stream(handoff), store.find_handoff(handoff)
        attempt = None if child is None else store.find_stream(child.run or "")
        later = max((one.last_at for one in (own, attempt) if one is not None), default=0)
        if row is not None and later <= row.last_at:
            withdraw(context, run, handoff)
    context.runs.pop(run.id, None)
    return outcome


def _last_body(context: Context, run: ActiveRun, outcome: Outcome) -> Body:
    # Read before the commit: a head listed here means at least this far.
    rows = context.recorder.store.heads(tuple(run.history.children)) if run.history.children else ()
    return _ending(run, outcome, tuple(RunHead(row.id, row.seq, row.head) for row in rows))


def _ending(run: ActiveRun, outcome: Outcome, children: tuple[RunHead, ...]) -> Body:
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
    row = recorder.store.find_handoff(handoff)
    if row is not None and row.state == State.CANCELLED:  # and so is what it handed on
        for child in read_attempts(recorder.store, row).children:
            withdraw(context, run, child)
