"""Gates of handoffs: the decision of the policy about an offer, from the signed lineage and from its baton."""

from hashlib import sha256
from typing import TYPE_CHECKING

from batonpass.guard.policy.gates import GateDecision, HandoffFacts, decide, is_silent_on_handoff, judge_handoff
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Mode, Relation
from batonpass.model.baton.baton import Brief
from batonpass.model.baton.items import Artifact, Item
from batonpass.model.policy.policy_rules import Tier

if TYPE_CHECKING:
    from batonpass.handoff.runtime.desk import Desk
    from batonpass.handoff.runtime.run_state import Holding
from batonpass.handoff.approvals.gate_facts import alarms_of, depth_of


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
) -> tuple[GateDecision | None, tuple[str, ...]]:
    """Return the decision that holds or denies an offer, and flags for decisions that would have if enforced."""
    tiers, method, readers = tiers_of_handoff(brief), has_method(brief), holding.taint.base.readers
    if readers is None and is_silent_on_handoff(
        desk.gates, relation, tiers=tiers, has_method=method, unverified=unverified
    ):
        return None, ()
    decisions = judge_handoff(
        HandoffFacts(
            to=to,
            relation=relation,
            may=brief.may,
            tiers=tiers,
            depth=depth_of(desk, holding) + 1,
            alarms=alarms_of(desk, to),
            missing=missing,
            unverified=unverified,
            has_method=method,
            is_verbatim=is_verbatim(task, items),
            may_read=holding.taint.base.may_read(f"agent:{to}"),
        ),
        desk.gates,
    )
    enforced = desk.gates.enforce or holding.working.mode is Mode.ENFORCED
    decision = decide(decisions, enforced=enforced, stops_harm=holding.stops_harm)
    told = [each for each in decisions if each is not decision]
    return decision, tuple(dict.fromkeys(each.flag for each in told))


def tiers_of_handoff(brief: Brief) -> tuple[Tier, ...]:
    """Return the tiers of a handoff: one with a budget of tokens or money lets others spend our resources.

    A budget of calls or seconds is only a limit. Nobody should be held for being careful.
    """
    budget = brief.budget
    spends = budget is not None and (budget.cost is not None or budget.tokens is not None)
    return (Tier.BUDGETED_DELEGATION,) if spends else ()


def has_method(brief: Brief) -> bool:
    """Return whether a handoff says how its result can be checked: by a command or by criteria."""
    return bool(brief.verify_by or brief.criteria)


def is_verbatim(task: str, items: tuple[Item, ...]) -> bool:
    """Return whether the task is, word for word, an untrusted text of the baton."""
    foreign = {item.value.sha256 for item in items if isinstance(item.value, Artifact) and item.value.untrusted}
    return bool(foreign) and sha256(task.encode()).hexdigest() in foreign
