"""Gates of handoffs: what the policy says about an offer, from the signed lineage and from what comes along."""

from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from batonpass.guard.gates import Decision, HandoffFacts, decide, judge_handoff
from batonpass.handoff.transfer.holds import takes_proof_today
from batonpass.model.baton import Brief
from batonpass.model.ids import AgentId, RunId
from batonpass.model.items import Artifact, Item
from batonpass.model.kinds import Gate, Relation
from batonpass.model.receipt import Mode
from batonpass.model.rules import Tier
from batonpass.store.port import LedgerView

if TYPE_CHECKING:
    from batonpass.handoff.desk import Desk
    from batonpass.handoff.holding import Holding


def judge_offer(
    desk: "Desk",
    holding: "Holding",
    *,
    to: AgentId,
    relation: Relation,
    brief: Brief,
    task: str,
    items: tuple[Item, ...],
    missing: tuple[str, ...],
    unverified: int,
) -> tuple[Decision | None, tuple[str, ...]]:
    """Return what holds or refuses an offer, and what would have, had it been enforced."""
    decisions = judge_handoff(
        HandoffFacts(
            to=to,
            relation=relation,
            may=brief.may,
            tiers=tiers_of_handoff(brief),
            depth=depth_of(desk, holding) + 1,
            missing=missing,
            unverified=unverified,
            has_method=has_method(brief),
            is_verbatim=is_verbatim(task, items),
            may_read=holding.taint.base.may_read(f"agent:{to}"),
        ),
        desk.gates,
    )
    decision = decide(decisions, enforced=desk.gates.enforce or holding.working.mode is Mode.ENFORCED)
    told = [each for each in decisions if each is not decision]
    return decision, tuple(dict.fromkeys(each.flag for each in told))


def tiers_of_handoff(brief: Brief) -> tuple[Tier, ...]:
    """Return the tiers of a handoff: with tokens or money of its own, others spend what is ours.

    A budget of calls or seconds only limits; whoever sets one must not be held for it.
    """
    budget = brief.budget
    spends = budget is not None and (budget.cost is not None or budget.tokens is not None)
    return (Tier.BUDGETED_DELEGATION,) if spends else ()


def has_method(brief: Brief) -> bool:
    """Return whether a handoff says how anybody will tell that its result holds."""
    return bool(brief.verify_by or brief.criteria)


def is_verbatim(task: str, items: tuple[Item, ...]) -> bool:
    """Return whether a task is, word for word, a text that came from outside."""
    foreign = {item.value.sha256 for item in items if isinstance(item.value, Artifact) and item.value.untrusted}
    return bool(foreign) and sha256(task.encode()).hexdigest() in foreign


def hold_until(desk: "Desk") -> datetime | None:
    """Return when a hold that begins now is denied; None if it waits for ever."""
    return None if desk.gates.hold_for is None else desk.clock.now() + desk.gates.hold_for


def hold_takes_proof(desk: "Desk", gate: Gate) -> bool:
    """Return whether a hold that begins now takes a decision that an approver's key signed."""
    with desk.store.view() as view:
        return takes_proof_today(view, desk.gates, gate)


def depth_of(desk: "Desk", holding: "Holding") -> int:
    """Return how many hops a run is below its root, by the signed lineage; 0 where nothing in the policy asks."""
    if not desk.gates.needs_depth:
        return 0
    if holding.depth is None:
        with desk.store.view() as view:
            holding.depth = depth_in(view, holding.id)
    return holding.depth


def depth_in(view: LedgerView, run: RunId) -> int:
    """Return how many hops a run is below its root."""
    depth, known = 0, view.get_run(run)
    while known.parent is not None:
        depth, known = depth + 1, view.get_run(known.parent)
    return depth
