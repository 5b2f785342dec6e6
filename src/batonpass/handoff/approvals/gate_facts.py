"""Facts that gates of calls and handoffs share: depth, alarms, the end of a hold, and whether it needs a key."""

from datetime import datetime
from typing import TYPE_CHECKING

from batonpass.guard.policy.gates import GateDecision, opens_unproven
from batonpass.handoff.history.holds import takes_proof_today
from batonpass.model.base.ids import AgentId, RunId
from batonpass.model.base.kinds import Gate, Mode
from batonpass.records.remarks.alarm import alarmed_kinds
from batonpass.store.port import LedgerView

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding


def hold_until(desk: "Desk") -> datetime | None:
    """Return when a hold that begins now is denied; None if it waits forever."""
    return None if desk.gates.hold_for is None else desk.clock.now() + desk.gates.hold_for


def hold_takes_proof(desk: "Desk", mode: Mode, decision: GateDecision | None) -> bool:
    """Return whether a hold that begins now needs a ruling that is signed with the key of an approver."""
    gate, rule = (Gate.NONE, None) if decision is None else (decision.gate, decision.rule)
    if opens_unproven(desk.gates, mode, rule):
        return False
    with desk.store.view() as view:
        return takes_proof_today(view, desk.gates, gate)


def depth_of(desk: "Desk", holding: "Holding") -> int:
    """Return how many hops a run is below its root, from the record; 0 if no rule of the policy needs it."""
    if not desk.gates.needs_depth:
        return 0
    if holding.depth is None:
        with desk.store.view() as view:
            holding.depth = depth_in(view, holding.id)
    return holding.depth


def alarms_of(desk: "Desk", agent: AgentId) -> tuple[str | None, ...]:
    """Return the kinds of task at which an agent is in alarm, from the record; none if no rule of the policy asks."""
    if not desk.gates.needs_alarms:
        return ()
    with desk.store.view() as view:
        return alarmed_kinds(view, agent)


def depth_in(view: LedgerView, run: RunId) -> int:
    """Return how many hops a run is below its root."""
    depth, known = 0, view.get_run(run)
    while known.parent is not None:
        depth, known = depth + 1, view.get_run(known.parent)
    return depth
