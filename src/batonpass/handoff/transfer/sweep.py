"""The sweep: end attempts whose lease ran out, handoffs whose deadline passed, and holds that nobody ruled on."""

from datetime import timedelta
from typing import Final

from batonpass.errors import IllegalTransitionError, LeaseLostError, NotFoundError, StreamClosedError
from batonpass.handoff.approvals.decision import TIME_LIMIT, decide_handoff, out_of_time
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.transfer.attempt_limit import RETRIES, is_last, park, pause_after
from batonpass.handoff.transfer.close import DEADLINE, expire, lapse, withdraw_below
from batonpass.handoff.transfer.wait import resume_all
from batonpass.model.base.ids import HandoffId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import Handoff
from batonpass.records.hold import find_hold

# Long enough to write one receipt. If the sweeper dies in between, the next sweep finds the lease run out again.
_FOR_ONE_RECEIPT: Final = timedelta(seconds=10)


def sweep(desk: Desk, *, holder: str) -> int:
    """End everything that is out of time, and return how many there were: attempts, handoffs and holds."""
    ended = 0
    while (lease := desk.store.seize(holder=holder, lease_for=_FOR_ONE_RECEIPT)) is not None:
        if (running := _find_running(desk, lease.handoff)) is not None:
            try:
                _end_lost(desk, running)
            except (IllegalTransitionError, NotFoundError, LeaseLostError, StreamClosedError):
                continue  # the attempt ended by itself in the meantime
        else:
            desk.store.release(lease)
        ended += 1
    with desk.store.view() as view:
        overdue = list(view.find_overdue())
    for handoff in overdue:
        try:
            expire(desk, handoff.id)
        except IllegalTransitionError:
            continue
        withdraw_below(desk, handoff, by=DEADLINE, reason="the deadline of the handoff above it has passed")
        ended += 1
    return ended + _deny_unanswered(desk) + resume_all(desk)


def _deny_unanswered(desk: Desk) -> int:
    """Deny every hold whose time limit has passed, and return how many. The limit is in the receipt of the hold."""
    with desk.store.view() as view:
        holds = [(handoff, find_hold(view, handoff)) for handoff in view.find_held()]
    denied = 0
    for handoff, hold in holds:
        if hold is None or hold.until is None or hold.until > desk.clock.now():
            continue
        reason = out_of_time(hold.until)
        try:
            decide_handoff(desk, handoff.id, approved=False, by=TIME_LIMIT, reason=reason)
        except IllegalTransitionError:
            continue  # somebody ruled in the meantime
        withdraw_below(desk, handoff, by=TIME_LIMIT, reason=reason)
        denied += 1
    return denied


def _find_running(desk: Desk, handoff: HandoffId) -> tuple[Handoff, bool] | None:
    """Return a handoff that is running, and whether this is its last attempt; None if it is not running."""
    with desk.store.view() as view:
        known = view.get_handoff(handoff)
        return (known, is_last(desk, view, known)) if known.state is State.RUNNING else None


def _end_lost(desk: Desk, running: tuple[Handoff, bool]) -> None:
    """End the attempt of a worker that is gone: the next one waits a while, and after the last one there is none."""
    handoff, last = running
    if last:
        park(desk, handoff)
        withdraw_below(desk, handoff, by=RETRIES, reason="the last attempt of its parent has failed")
        return
    # A worker may die of many things, and a lease has passed already: the second attempt begins at once. From the next
    # one on the task is suspect. It is postponed first, or a worker that waits for work would take it in between.
    if handoff.attempt > 1:
        desk.store.postpone(handoff.id, pause_after(handoff.attempt - 1))
    lapse(desk, handoff.id)
