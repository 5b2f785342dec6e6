"""Gaps in the record: how many calls went unrecorded is written down before anything else is."""

from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.bodies.body import RunGap


def fill_gap(desk: Desk, holding: Holding) -> None:
    """Record how many calls went unrecorded, if any did; whatever a run writes comes after that."""
    with holding.lock:
        missed, holding.unrecorded = holding.unrecorded, 0
    if not missed or holding.replaying:
        return
    try:
        desk.recording.record(holding.working, RunGap(run=holding.id, calls=missed))
    except BaseException:
        with holding.lock:
            holding.unrecorded += missed
        raise
