"""Gates where they stand: a handoff is held or refused at its offer, a held call suspends its attempt."""

from datetime import datetime
from hashlib import sha256
from typing import Any

from batonpass.errors import CallSuspendedError
from batonpass.guard.gates import (
    CallFacts,
    Decision,
    HandoffFacts,
    decide,
    judge_call,
    judge_handoff,
    takes_proof,
    tiers_of_call,
)
from batonpass.handoff.calls.tainted_call import Vetted, judge_taint
from batonpass.handoff.calls.tools import Declared, ToolCall
from batonpass.handoff.desk import Desk
from batonpass.handoff.holding import Holding
from batonpass.ledger.standing import need
from batonpass.model.baton import Brief
from batonpass.model.bodies import Body, ChildHead, HandoffHeld, ToolHeld
from batonpass.model.call import Call
from batonpass.model.content import Content
from batonpass.model.ids import AgentId, Digest, RunId, new_call_id
from batonpass.model.items import Artifact, Item
from batonpass.model.kinds import Relation
from batonpass.model.receipt import Mode
from batonpass.model.rules import Tier
from batonpass.model.run import Handoff
from batonpass.store.port import LedgerView


def tiers_of(declared: Declared) -> tuple[Tier, ...]:
    """Return the tiers of a tool's calls."""
    return tiers_of_call(
        reads=declared.reads,
        reversible=declared.reversible,
        external=declared.external,
        costly=declared.costly,
    )


def judge(
    desk: Desk,
    holding: Holding,
    call: ToolCall[Any],
    target: str | None,
    key: Digest,
    *,
    aim: Digest,
    tried: Call | None = None,
) -> tuple[Decision, ...]:
    """Return what taint and the policy say about a call; nothing about one that somebody let be made."""
    if key in holding.resumption.approved:
        return ()
    facts = CallFacts(
        agent=holding.agent,
        tool=call.declared.name,
        reads=call.declared.reads,
        action=call.declared.action,
        target=target,
        does=call.action,
        resource=call.resource,
        leads_to=None if tried is None else tried.resource,
        arguments=call.arguments if tried is None else tried.arguments,
        tiers=tiers_of(call.declared),
        depth=depth_of(desk, holding),
    )
    return (*judge_taint(desk, holding, facts, aim), *judge_call(facts, desk.gates))


def suspend(
    desk: Desk,
    holding: Holding,
    call: ToolCall[Any],
    key: Digest,
    decision: Decision,
    *,
    arguments: Content,
    vetted: Vetted,
) -> CallSuspendedError:
    """Record that a call waits for somebody, and end the attempt: nobody waits for a person. Return what to raise.

    A root has no handoff that could wait, so it stays open.
    """
    tool = call.declared.name
    held = ToolHeld(
        run=holding.id,
        call=new_call_id(desk.clock.now()),
        tool=tool,
        rule=decision.rule,
        gate=decision.gate,
        key=key,
        reads=call.declared.reads,
        tiers=tuple(str(tier) for tier in tiers_of(call.declared)),
        proven=takes_proof(desk.gates, decision.gate),
        target=vetted.aim,
        # Whoever works for a handoff stops here, and the handoff waits; then its own hold says how long.
        until=hold_until(desk) if holding.working.run.handoff is None else None,
        label=vetted.label,
        untrusted=vetted.untrusted,
    )
    contents = [arguments, desk.refusal(decision.sentence)]
    if (target := call.target) is not None:
        contents.append(desk.text("target", target))
    desk.recording.record(holding.working, held, tuple(contents))
    handoff = holding.working.run.handoff
    if handoff is None:
        holding.held[held.call] = held
    else:

        def hold(known: Handoff, ended: ChildHead | None) -> Body:
            return HandoffHeld(
                handoff=known.id,
                attempt=known.attempt,
                ended=need(ended, known),
                reason=decision.rule,
                call=held.call,
                gate=decision.gate,
                until=hold_until(desk),
                proven=held.proven,
            )

        desk.recording.act(handoff, hold, (desk.refusal(decision.sentence),))
    return CallSuspendedError(tool, held.call, decision.rule, decision.sentence, handoff)


def judge_offer(
    desk: Desk,
    holding: Holding,
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
    said = sha256(task.encode()).hexdigest()
    return any(
        isinstance(item.value, Artifact) and item.value.untrusted and item.value.sha256 == said for item in items
    )


def hold_until(desk: Desk) -> datetime | None:
    """Return when a hold that begins now is denied; None if it waits for ever."""
    return None if desk.gates.hold_for is None else desk.clock.now() + desk.gates.hold_for


def depth_of(desk: Desk, holding: Holding) -> int:
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
