"""The sweep: end attempts whose lease ran out, handoffs whose deadline passed, and holds that nobody ruled on."""

from datetime import timedelta
from typing import Final

from batonpass.errors import IllegalTransitionError, LeaseLostError, NotFoundError
from batonpass.handoff.approvals.decision import TIME_LIMIT, decide_handoff, out_of_time
from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.transfer.close import expire, lapse, withdraw_below
from batonpass.handoff.transfer.wait import resume_all
from batonpass.model.base.ids import HandoffId
from batonpass.model.base.lifecycle import State
from batonpass.records.hold import find_hold

# Long enough to write one receipt. If the sweeper dies in between, the next sweep finds the lease run out again.
_FOR_ONE_RECEIPT: Final = timedelta(seconds=10)
_DEADLINE: Final = "service:deadline"  # in whose name a sweep withdraws handoffs


def sweep(desk: Desk, *, holder: str) -> int:
    """End everything that is out of time, and return how many there were: attempts, handoffs and holds."""
    ended = 0
    while (lease := desk.store.seize(holder=holder, lease_for=_FOR_ONE_RECEIPT)) is not None:
        if _is_running(desk, lease.handoff):
            try:
                lapse(desk, lease.handoff)
            except (IllegalTransitionError, NotFoundError, LeaseLostError):
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
        withdraw_below(desk, handoff, by=_DEADLINE, reason="the deadline of what it was for has passed")
        ended += 1
    return ended + _deny_unanswered(desk) + resume_all(desk)


def _deny_unanswered(desk: Desk) -> int:
    """Deny every hold whose time limit has passed, and return how many. The limit stands in the receipt of the hold."""
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


def _is_running(desk: Desk, handoff: HandoffId) -> bool:
    with desk.store.view() as view:
        return view.get_handoff(handoff).state is State.RUNNING
