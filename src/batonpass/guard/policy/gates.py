"""Gates: whether a handoff or a call goes on, is held or is denied. Decided from values alone.

The first rule that matches decides; if none does, the strictest tier decides. Requirements of a kind of handoff,
allowed agents and depth are checked as well, whatever the rules say.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from functools import lru_cache

from batonpass.guard.policy.call_patterns import UsedOn, is_covered, is_named
from batonpass.guard.policy.name_patterns import fits
from batonpass.model.base.ids import AgentId, is_user
from batonpass.model.base.kinds import Gate, Mode, Relation
from batonpass.model.base.value import Value
from batonpass.model.policy.policy_rules import (
    AGENTS,
    DEPTH,
    HARMFUL,
    METHOD,
    NOT,
    READERS,
    RENEW,
    REQUIRE,
    STRICTNESS,
    TIER,
    VERBATIM,
    VERIFICATION,
    Demand,
    DoorName,
    Policy,
    Rule,
    Subject,
    Tier,
)


class Force(Enum):
    """When a decision takes effect."""

    REPORTED = auto()  # never: it is only reported
    GATED = auto()  # if the run or the policy is enforced
    REQUIRED = auto()  # always: the policy file asks for it by name


class GateDecision(Value, frozen=True, kw_only=True):
    """The policy's decision about one handoff or call: the gate, and the rule with its line."""

    gate: Gate
    rule: str
    line: int | None
    sentence: str
    force: Force = Force.GATED
    where: str | None = None  # where the rule is written, if only a door knows it; None: in the policy
    approvals: int = 1  # how many people must approve

    @property
    def flag(self) -> str:
        """Return the flag that is recorded when it does not take effect."""
        return f"would_{'deny' if self.gate is Gate.DENY else 'hold'}.{self.rule}"

    def takes_effect(self, *, enforced: bool) -> bool:
        """Return whether it holds or denies, instead of being only reported."""
        return self.force is Force.REQUIRED or (enforced and self.force is Force.GATED)


class DoorFacts(Value, frozen=True, kw_only=True):
    """The facts about a call that its door tells the rules."""

    door: DoorName
    agent: AgentId | None = None  # who makes the call, if the door knows better than the run
    used: UsedOn | None = None  # None: as the declaration of the tool says


class CallFacts(Value, frozen=True, kw_only=True):
    """The facts about a call before it is made."""

    agent: AgentId
    tool: str
    kin: tuple[str, ...] = ()  # other names by which rules that hold or deny mean this tool
    door: DoorName | None = None
    used: UsedOn | None = None  # the objects of the call; None: none has a name, or no rule asks
    reads: bool = False
    action: str | None = None  # its action as a grant names it, if the tool declares one
    target: str | None = None
    does: str = "call"  # for a call without a target: its action and resource, as a grant names them
    resource: str | None = None
    leads_to: str | None = None  # the target after links were followed, as a grant sees it; None: not resolved
    tiers: tuple[Tier, ...] = ()
    depth: int = 0  # of the run that makes it: hops below the root
    alarms: tuple[str | None, ...] = ()  # the kinds of task at which the caller is in alarm, if a rule asks
    arguments: Mapping[str, object] = {}  # arguments that are paths are given as resolved


class HandoffFacts(Value, frozen=True, kw_only=True):
    """The facts about a handoff before it is offered."""

    to: AgentId
    relation: Relation
    may: tuple[str, ...] = ()
    tiers: tuple[Tier, ...] = ()
    depth: int = 1  # of the receiver
    alarms: tuple[str | None, ...] = ()  # the kinds of task at which the receiver is in alarm, if a rule asks
    missing: tuple[str, ...] = ()
    unverified: int = 0  # results that it builds on and that nobody verified or accepted
    has_method: bool = True  # somebody can tell whether the result holds
    is_verbatim: bool = False  # its task is, word for word, a text from outside
    may_read: bool = True  # the receiver may read everything that the sender knows


@lru_cache(maxsize=64)
def tiers_of_call(*, reads: bool, reversible: bool | None, external: bool, costly: bool) -> tuple[Tier, ...]:
    """Return the tiers of a call, from the declaration of its tool."""
    tiers = [Tier.COSTLY] if costly else []
    if reads:
        return tuple(tiers)
    if external:
        tiers.append(Tier.EXTERNAL_WRITE)
    if reversible is not None:
        tiers.append(Tier.REVERSIBLE if reversible else Tier.IRREVERSIBLE)
    elif not external:
        tiers.append(Tier.UNDECLARED)
    return tuple(tiers)


def is_silent(policy: Policy, tiers: tuple[Tier, ...]) -> bool:
    """Return whether the policy says nothing about any call in these tiers."""
    if policy.rules or policy.renew_every is not None or policy.handoffs.max_depth is not None:
        return False
    # A plain loop takes half the time of `all`, and this runs at every call.
    for tier in tiers:  # noqa: SIM110
        if policy.tiers[tier] is not Gate.NONE:
            return False
    return True


def is_silent_on_handoff(
    policy: Policy, relation: Relation, *, tiers: tuple[Tier, ...], has_method: bool, unverified: int
) -> bool:
    """Return whether the policy says nothing about a handoff with these facts. Readers are not considered here."""
    if (
        policy.rules
        or tiers
        or policy.allowed_agents is not None
        or policy.renew_every is not None
        or policy.handoffs.max_depth is not None
    ):
        return False
    wanted = policy.requirements[relation]
    return (
        not wanted.require
        and wanted.verbatim is Demand.NONE
        and (has_method or wanted.method is Demand.NONE)
        and (unverified == 0 or wanted.verification is Demand.NONE)
    )


def judge_call(facts: CallFacts, policy: Policy) -> tuple[GateDecision, ...]:
    """Return the decisions of the policy about a call; none if it just goes on."""
    what = f"{facts.agent} calls {facts.tool}" + ("" if facts.target is None else f" on {facts.target}")
    rule = next((rule for rule in policy.rules if rule.on is Subject.CALL and _fits_call(rule, facts)), None)
    return tuple(_gated(rule, facts.tiers, policy, what))


def judge_handoff(facts: HandoffFacts, policy: Policy) -> tuple[GateDecision, ...]:
    """Return the decisions of the policy about a handoff; none if it just goes on."""
    what = f"a {facts.relation} handoff to {facts.to}"
    rule = next((rule for rule in policy.rules if rule.on is Subject.HANDOFF and _fits_handoff(rule, facts)), None)
    return (
        *_gated(rule, facts.tiers, policy, what),
        *_find_lacks(facts, policy),
        *_find_limits(facts, policy),
    )


def decide(decisions: Iterable[GateDecision], *, enforced: bool, stops_harm: bool = False) -> GateDecision | None:
    """Return the strictest decision that takes effect, the first of several; None if nothing stops it.

    Of two that need people, the one that needs more of them is stricter, so that the other does not hide it. With
    `stops_harm`, the tiers that do harm take effect in an observed run as well.
    """
    found = [
        decision
        for decision in decisions
        if decision.takes_effect(enforced=enforced or (stops_harm and decision.rule in HARMFUL))
    ]
    return max(found, key=lambda decision: (STRICTNESS.index(decision.gate), decision.approvals), default=None)


def may_let_go_on(gate: Gate, by: str, *, worker: AgentId, principal: str | None = None) -> bool:
    """Return whether somebody may open a gate. Only a person approves, and nobody confirms their own work.

    A service or another program confirms only work that was asked for in its own name (`principal`).
    """
    if gate is Gate.DENY or is_user(by):
        return gate is not Gate.DENY
    if by.startswith("agent:"):
        return gate is not Gate.APPROVE and by != f"agent:{worker}"
    return gate is Gate.NONE or (gate is Gate.CONFIRM and by == principal)


def is_for_approvers(gate: Gate) -> bool:
    """Return whether a gate is for approvers, with their keys and within their scopes.

    A confirmation is not: it comes from the one who asked, who may be an agent, and agents have no approver's key.
    """
    return gate is not Gate.CONFIRM


def takes_proof(policy: Policy, gate: Gate, *, enrolled: bool) -> bool:
    """Return whether a ruling at this gate must be signed with an approver's key.

    `enrolled` says whether any approver has a key. It decides if the policy says nothing.
    """
    return is_for_approvers(gate) and (enrolled if policy.proven is None else policy.proven)


def opens_unproven(policy: Policy, mode: Mode, rule: str | None) -> bool:
    """Return whether a name is enough to open a hold: one that only a native agent in an observed run has."""
    return mode is Mode.OBSERVED and rule in HARMFUL and not policy.enforce and policy.proven is None


def _gated(rule: Rule | None, tiers: tuple[Tier, ...], policy: Policy, what: str) -> Iterator[GateDecision]:
    if rule is not None:
        if rule.gate is not Gate.NONE:
            sentence = f"{what}; rule {rule.name} says {rule.gate}{_named_in(rule)}"
            yield GateDecision(
                gate=rule.gate, rule=rule.name, line=rule.line, sentence=sentence, approvals=rule.approvals
            )
        return
    if not tiers:
        return
    tier = max(tiers, key=lambda tier: STRICTNESS.index(policy.tiers[tier]))
    if (gate := policy.tiers[tier]) is not Gate.NONE:
        name = f"{TIER}.{tier}"
        sentence = f"{what}, which is declared {tier}; the policy says {gate}"
        yield GateDecision(gate=gate, rule=name, line=policy.lines.get(name), sentence=sentence)


def _fits_call(rule: Rule, facts: CallFacts) -> bool:
    return (
        _fits_agent(rule, facts.agent)
        and (rule.door is None or rule.door is facts.door)
        and _fits_tool(rule, facts)
        and fits(rule.action, "read" if facts.reads else "write", across=True)
        and _fits_target(rule, facts)
        and (rule.tier is None or rule.tier in facts.tiers)
        and (rule.depth is None or facts.depth >= rule.depth)
        and _fits_alarm(rule, facts.alarms)
    )


def _fits_alarm(rule: Rule, alarms: tuple[str | None, ...]) -> bool:
    """Return whether an agent is in alarm as a rule says. A kind of task whose name was erased may be any."""
    if rule.alarm is None:
        return True
    # Unknown counts as "yes" for a rule that holds or denies, and as "no" for one that lets go on.
    return any(rule.gate is not Gate.NONE if kind is None else fits(rule.alarm, kind, across=True) for kind in alarms)


def _fits_agent(rule: Rule, agent: AgentId) -> bool:
    patterns = rule.agents
    if any(fits(one.removeprefix(NOT), agent, across=True) for one in patterns if one.startswith(NOT)):
        return False
    wanted = [one for one in patterns if not one.startswith(NOT)]
    return not wanted or any(fits(one, agent, across=True) for one in wanted)


def _fits_tool(rule: Rule, facts: CallFacts) -> bool:
    """Return whether a rule is about the call of a tool.

    A rule that lets calls go on applies only to the tools that it names, and only if it covers all that the call does.
    An exception of a rule that holds or denies has to cover all of it as well, and may name a kind.
    """
    names = (facts.tool, *facts.kin)
    if rule.gate is Gate.NONE:
        is_about = not rule.tools or is_covered(rule.tools, names[:1], facts.used)
        return is_about and not is_named(rule.excepted, names, facts.used)
    is_about = not rule.tools or is_named(rule.tools, names, facts.used)
    return is_about and not is_covered(rule.excepted, names, facts.used)


def _named_in(rule: Rule) -> str:
    """Return which calls a rule means, if it says more than the name of a tool."""
    uses = [pattern.text for pattern in rule.tools if pattern.of is not None]
    to = f" to {', '.join(uses)}" if uses else ""
    return f"{to}, except {', '.join(rule.unless)}" if rule.unless else to


def _fits_target(rule: Rule, facts: CallFacts) -> bool:
    """Return whether a rule matches the target of a call, as it is spelled and as it resolves.

    A rule that holds or denies matches if either does, so that a link or `..` is no way around it. A rule that lets
    calls go on matches only if both do.
    """
    found = [fits(rule.target, spelled) for spelled in dict.fromkeys((facts.target, facts.leads_to)) if spelled]
    if not found or facts.target is None:
        return fits(rule.target, facts.target)
    return all(found) if rule.gate is Gate.NONE else any(found)


def _fits_handoff(rule: Rule, facts: HandoffFacts) -> bool:
    return (
        _fits_agent(rule, facts.to)
        and (rule.relation is None or rule.relation is facts.relation)
        and _asks_for(rule, facts.may)
        and (rule.tier is None or rule.tier in facts.tiers)
        and (rule.depth is None or facts.depth >= rule.depth)
        and _fits_alarm(rule, facts.alarms)
    )


def _asks_for(rule: Rule, may: tuple[str, ...]) -> bool:
    """Return whether one line of the requested scope matches both the action and the target of a rule."""
    if rule.action is None and rule.target is None:
        return True
    asked = [(action, target or None) for action, _, target in (each.partition(":") for each in may)]
    return any(fits(rule.action, action, across=True) and fits(rule.target, target) for action, target in asked)


def _find_lacks(facts: HandoffFacts, policy: Policy) -> Iterator[GateDecision]:
    """Yield a decision for each requirement that a handoff of this kind does not meet."""
    wanted = policy.requirements[facts.relation]
    lacking = tuple(part for part in facts.missing if part in wanted.require)
    if lacking:
        yield _lack(REQUIRE, facts, policy, Demand.REFUSE, f"must say {', '.join(lacking)}, and does not")
    if not facts.has_method:
        yield from _demanded(METHOD, facts, policy, wanted.method, "names no way to tell whether the result holds")
    if facts.unverified:
        builds = f"builds on {facts.unverified} results that nobody verified or accepted"
        yield from _demanded(VERIFICATION, facts, policy, wanted.verification, builds)
    if facts.is_verbatim:
        yield from _demanded(VERBATIM, facts, policy, wanted.verbatim, "passes on a text from outside as its task")


def _demanded(name: str, facts: HandoffFacts, policy: Policy, demand: Demand, lack: str) -> Iterator[GateDecision]:
    if demand is not Demand.NONE:
        yield _lack(name, facts, policy, demand, lack)


def _lack(name: str, facts: HandoffFacts, policy: Policy, demand: Demand, lack: str) -> GateDecision:
    rule = f"{name}.{facts.relation}"
    return GateDecision(
        gate=Gate.DENY,
        rule=rule,
        line=policy.lines.get(rule),
        sentence=f"a {facts.relation} handoff to {facts.to} {lack}",
        force=Force.REQUIRED if demand is Demand.REFUSE else Force.REPORTED,
    )


def _find_limits(facts: HandoffFacts, policy: Policy) -> Iterator[GateDecision]:
    """Yield a decision if the receiver is not allowed, may not read an item, or the chain is too long.

    Depth is only reported here: the offer itself refuses it, by the same field of the `HandoffPolicy`.
    """
    allowed = policy.allowed_agents
    if allowed is not None and not any(fits(pattern, facts.to, across=True) for pattern in allowed):
        sentence = f"{facts.to} is not one of {', '.join(allowed) or 'nobody'}"
        yield GateDecision(
            gate=Gate.DENY, rule=AGENTS, line=policy.lines.get(AGENTS), sentence=sentence, force=Force.REQUIRED
        )
    deepest = policy.handoffs.max_depth
    if deepest is not None and facts.depth >= deepest:
        sentence = f"{facts.to} would be agent number {facts.depth + 1} of its lineage, and {deepest} are allowed"
        yield GateDecision(
            gate=Gate.DENY, rule=DEPTH, line=policy.lines.get(DEPTH), sentence=sentence, force=Force.REPORTED
        )
    if not facts.may_read:
        sentence = f"{facts.to} is not among those who may read all that the sender knows"
        yield GateDecision(gate=Gate.APPROVE, rule=READERS, line=None, sentence=sentence)
    every = policy.renew_every
    if every is not None and facts.depth % every == 0:
        sentence = f"{facts.to} would be {facts.depth} hops below the root; every {every} a person renews the grant"
        yield GateDecision(gate=policy.renewal, rule=RENEW, line=policy.lines.get(RENEW), sentence=sentence)
