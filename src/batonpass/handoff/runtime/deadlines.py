"""Whether work is out of time. A deadline holds whether or not anybody sweeps."""

from datetime import datetime

from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.base.ids import HandoffId


def is_overdue(desk: Desk, handoff: HandoffId, deadline: datetime | None, *, now: datetime | None = None) -> bool:
    """Return whether the deadline of a handoff has passed by the store's clock, and the handoff can still expire.

    The store decides, as for a sweep: a relay whose clock runs ahead ends no work of others. It is asked only if our
    own clock says so too, so work in time pays nothing.
    """
    if deadline is None or (now or desk.clock.now()) < deadline:
        return False
    with desk.store.view() as view:
        return any(known.id == handoff for known in view.find_overdue())


def is_out_of_time(desk: Desk, holding: Holding) -> bool:
    """Return whether the deadline of a run's task has passed."""
    baton = holding.baton
    if baton is None or baton.deadline is None or holding.replaying:
        return False
    return is_overdue(desk, baton.handoff, baton.deadline, now=holding.present(desk.clock))
