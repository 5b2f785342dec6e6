"""Gates of calls: the rules and tiers of the policy. A call passes, is denied or is held.

They are checked after grant, limits and constraints, so that no approver is asked about a call that is impossible.
"""

from msgspec.structs import replace

from batonpass.errors import CallDeniedError, CallSuspendedError
from batonpass.guard.policy.gates import CallFacts, GateDecision, decide, is_silent, judge_call, tiers_of_call
from batonpass.handoff.approvals.decision import heed, is_void
from batonpass.handoff.approvals.gate_facts import alarms_of, depth_of, hold_takes_proof, hold_until
from batonpass.handoff.approvals.replaced_target import GatedCall, find_standing, stands_as_shown
from batonpass.handoff.calls.pending_call import PendingCall
from batonpass.handoff.calls.taint_gate import judge_taint
from batonpass.handoff.runtime.record_gaps import fill_gap
from batonpass.handoff.shell.call_use import find_use
from batonpass.handoff.tools.declaration import Declared
from batonpass.ledger.position import need
from batonpass.model.base.content_names import ARGUMENTS, SCOPE, TARGET
from batonpass.model.base.ids import new_call_id
from batonpass.model.base.kinds import Gate
from batonpass.model.bodies.body import Body, ChildHead, HandoffHeld, ToolHeld
from batonpass.model.ledger.run import Handoff
from batonpass.model.policy.policy_rules import Tier


def pass_gates(pending: PendingCall) -> None:
    """Let a call pass, hold it or deny it, as the policy says; an observed call gets a flag instead.

    Gates stop calls if the run or the policy is enforced, and calls of a model also if they would do harm. Raises
    `CallDeniedError` and `CallSuspendedError`.
    """
    desk, holding = pending.desk, pending.holding
    try:
        pending.gates = _find_decisions(pending)
    except Exception as error:  # noqa: BLE001 - any error of a guard stops an enforced call
        pending.stop_unjudged(error)
    if not pending.gates:
        return
    # A check of revocations that was put off comes first: nobody shall be asked to approve a call whose grant is gone.
    pending.catch_up()
    # A call that was made before anybody asked cannot be stopped any more. It is recorded with flags instead (ADR 50).
    enforced = (desk.gates.enforce or pending.enforced) and not pending.made
    decision = decide(pending.gates, enforced=enforced, stops_harm=holding.stops_harm and not pending.made)
    if decision is None:
        return
    tool = pending.declared.name
    if decision.gate is Gate.DENY:
        where = decision.where or desk.gates.where(decision.rule)
        pending.deny(decision.rule, CallDeniedError(tool, decision.rule, where, decision.sentence))
    # The key is the same in every attempt. So a call that is made again after its hold finds the ruling about it.
    held = holding.find_held(pending.key)
    if held is None or is_void(desk, held, covers=_still_covers(pending, held)):
        _refuse_denied_before(pending, decision)
        fill_gap(desk, holding)
        raise _hold(pending, _told_anew(pending, decision, held))
    if (refusal := heed(desk, held, decision)) is not None:
        pending.deny(held.rule, refusal)
    # Approved: the request must not carry the flag of a gate that would have stopped it.
    pending.gates = ()


def _refuse_denied_before(pending: PendingCall, decision: GateDecision) -> None:
    """Deny a call that a person denied in an earlier root run of the session, so that nobody is asked twice."""
    denied, tool = pending.holding.denied_before, pending.declared.name
    if not denied:
        return
    by = denied.get((tool, pending.desk.json(ARGUMENTS, pending.described).body))
    if by is not None:
        sentence = f"{by} denied {tool} earlier in this session"
        where = pending.desk.gates.where(decision.rule)
        pending.deny(decision.rule, CallDeniedError(tool, decision.rule, where, sentence))


def _find_decisions(pending: PendingCall) -> tuple[GateDecision, ...]:
    """Return the decisions of taint, of the door's own rules and of the policy; none for a call that was approved."""
    desk, holding, declared = pending.desk, pending.holding, pending.declared
    # By the key, which includes the arguments: an approval answers one hold and opens nothing else (ADR 38).
    approved = holding.find_approved(pending.key, desk.clock)
    if approved is not None and _still_covers(pending, approved):
        return ()
    tiers, policy = tiers_of(declared), desk.gates
    # The way of most calls: no rule can apply and nothing taints the run, so no facts about the call are gathered.
    if not holding.taint.entered and is_silent(policy, tiers):
        return tuple(pending.call.find_refusals())
    leads_to = pending.tried.resource if pending.tried is not None and pending.call.acts_on_path else None
    told = pending.call.told_by_door
    agent = holding.agent if told is None or told.agent is None else told.agent
    facts = CallFacts(
        agent=agent,
        tool=declared.name,
        kin=declared.kin,
        door=None if told is None else told.door,
        used=find_use(pending.call, leads_to) if policy.needs_use else None,
        reads=declared.reads,
        action=declared.action,
        target=pending.target,
        does=pending.call.action,
        resource=pending.call.resource,
        leads_to=leads_to,
        arguments=pending.call.judged if pending.tried is None else pending.tried.arguments,
        tiers=tiers,
        depth=depth_of(desk, holding),
        alarms=alarms_of(desk, agent),
    )
    return (*judge_taint(pending, facts), *pending.call.find_refusals(), *judge_call(facts, policy))


def _told_anew(pending: PendingCall, decision: GateDecision, held: ToolHeld | None) -> GateDecision:
    """Return the decision, and why it is made again if somebody had approved the call for another file."""
    earlier = held or pending.holding.find_approved(pending.key, pending.desk.clock)
    if earlier is None or stands_as_shown(_asked(pending), earlier):
        return decision
    return replace(decision, sentence=f"{decision.sentence}; the file is not what it was when it was approved")


def _still_covers(pending: PendingCall, held: ToolHeld) -> bool:
    """Return whether an approval covers the call as it is now.

    Content from outside that came since was not shown, nor was a file that has changed since.
    """
    return (not pending.holding.taint.entered or held.label == pending.label) and stands_as_shown(_asked(pending), held)


def _asked(pending: PendingCall) -> GatedCall:
    return GatedCall(
        desk=pending.desk,
        root=pending.holding.root,
        declared=pending.declared,
        described=pending.described,
        is_here=pending.call.follows_paths,
    )


def tiers_of(declared: Declared) -> tuple[Tier, ...]:
    """Return the tiers of a tool's calls."""
    return tiers_of_call(
        reads=declared.reads,
        reversible=declared.reversible,
        external=declared.external,
        costly=declared.costly,
    )


def _hold(pending: PendingCall, decision: GateDecision) -> CallSuspendedError:
    """Record that a call is held, and return the error to raise.

    If the run works on a handoff, its attempt ends here and the handoff waits, so that no worker waits for a person. A
    root run has no handoff that could wait, and the agent of another program cannot be stopped. These two go on, and
    may make the call again later.
    """
    desk, holding, declared = pending.desk, pending.holding, pending.declared
    handoff = None if holding.stays_open else holding.working.run.handoff
    standing = find_standing(_asked(pending))
    held = ToolHeld(
        run=holding.id,
        call=new_call_id(desk.clock.now()),
        tool=declared.name,
        rule=decision.rule,
        gate=decision.gate,
        key=pending.key,
        reads=declared.reads,
        tiers=tuple(str(tier) for tier in tiers_of(declared)),
        proven=hold_takes_proof(desk, holding.working.mode, decision),
        approvals=decision.approvals,
        target=pending.aim,
        # If a handoff is held, the receipt of that hold says how long.
        until=hold_until(desk) if handoff is None else None,
        stays=holding.stays_open and holding.id != holding.root,
        label=pending.label,
        untrusted=pending.untrusted,
        standing=None if standing is None else standing.digest,
    )
    contents = [desk.json(ARGUMENTS, pending.described), desk.refusal(decision.sentence), *pending.beside]
    if pending.tried is not None:
        contents.append(desk.text(SCOPE, str(pending.tried)))  # compared with the scope of an approver
    if (target := pending.call.target) is not None:
        contents.append(desk.text(TARGET, target))
    if standing is not None:
        contents.append(standing.content)
    # First the run says which call waits. Then, for a handoff, a second receipt ends the attempt at exactly this head,
    # so that nothing can be written between the hold and the end.
    desk.recording.record(holding.working, held, tuple(contents))
    if handoff is None:
        holding.held[held.call] = held
        # An earlier approval of this call may have been used up. This hold gets a ruling of its own, which has to
        # count.
        holding.used_up.discard(pending.key)
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
                approvals=held.approvals,
            )

        desk.recording.act(handoff, hold, (desk.refusal(decision.sentence),))
    return CallSuspendedError(declared.name, held.call, decision.rule, decision.sentence, handoff)
