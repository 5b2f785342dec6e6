"""Gaps in the record: an observed run goes on while the store is away, and later says how many calls are missing."""

from batonpass.handoff.runtime.desk import Desk
from batonpass.handoff.runtime.run_state import Holding
from batonpass.model.bodies.body import RunGap


def fill_gap(desk: Desk, holding: Holding) -> None:
    """Record how many calls went unrecorded, if any did, before the run writes anything else. Raises `StoreError`."""
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
