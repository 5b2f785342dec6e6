"""Gates: whether a handoff or a call goes on, waits for somebody, or is denied; decided from values alone.

The first rule that fits decides; where none does, the strictest of its tiers. What a kind of handoff has to bring
along, who may be asked and how deep a chain may be is judged besides, whatever the rules say.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from functools import lru_cache

from batonpass.guard.policy.name_patterns import fits
from batonpass.model.base.ids import AgentId, is_user
from batonpass.model.base.kinds import Gate, Relation
from batonpass.model.base.value import Value
from batonpass.model.policy.policy_rules import (
    AGENTS,
    DEPTH,
    METHOD,
    READERS,
    RENEW,
    REQUIRE,
    STRICTNESS,
    TIER,
    VERBATIM,
    VERIFICATION,
    Demand,
    Policy,
    Rule,
    Subject,
    Tier,
)


class Force(Enum):
    """When a decision takes effect."""

    REPORTED = auto()  # never: it is only told
    GATED = auto()  # where the run, or the policy, is enforced
    REQUIRED = auto()  # always: the file asks for it by name


class GateDecision(Value, frozen=True, kw_only=True):
    """What the policy says about one handoff or call: which gate, by which rule, written where."""

    gate: Gate
    rule: str
    line: int | None
    sentence: str
    force: Force = Force.GATED
    where: str | None = None  # where a rule stands that only a door knows; None: in the policy
    approvals: int = 1  # so many people have to let it go on

    @property
    def flag(self) -> str:
        """Return how it is recorded where it does not take effect."""
        return f"would_{'deny' if self.gate is Gate.DENY else 'hold'}.{self.rule}"

    def takes_effect(self, *, enforced: bool) -> bool:
        """Return whether it holds or denies, or is only told."""
        return self.force is Force.REQUIRED or (enforced and self.force is Force.GATED)


class CallFacts(Value, frozen=True, kw_only=True):
    """What is known of a call before it is made."""

    agent: AgentId
    tool: str
    kin: tuple[str, ...] = ()  # by which other names rules that hold or deny mean the tool too
    reads: bool = False
    action: str | None = None  # what it does, as a grant names it, if its tool says so
    target: str | None = None
    does: str = "call"  # of one that names no target: its action, and what it does that to, as a grant names both
    resource: str | None = None
    leads_to: str | None = None  # what the target is once links are followed, as a grant sees it; None: nobody looked
    tiers: tuple[Tier, ...] = ()
    depth: int = 0  # of the run that makes it: hops below the root
    arguments: Mapping[str, object] = {}  # those that are held to a place, where they lead


class HandoffFacts(Value, frozen=True, kw_only=True):
    """What is known of a handoff before it is offered."""

    to: AgentId
    relation: Relation
    may: tuple[str, ...] = ()
    tiers: tuple[Tier, ...] = ()
    depth: int = 1  # of whoever takes it
    missing: tuple[str, ...] = ()
    unverified: int = 0  # results that it builds on and nobody verified or accepted
    has_method: bool = True  # somebody can tell whether the result holds
    is_verbatim: bool = False  # its task is, word for word, a text from outside
    may_read: bool = True  # whoever is asked is among the readers of all that the sender knows


@lru_cache(maxsize=64)
def tiers_of_call(*, reads: bool, reversible: bool | None, external: bool, costly: bool) -> tuple[Tier, ...]:
    """Return the tiers that a tool's declaration puts its calls into."""
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
    """Return whether a policy says nothing about a call in these tiers, whatever else is known of it."""
    if policy.rules or policy.renew_every is not None or policy.handoffs.max_depth is not None:
        return False
    # A plain loop takes half the time, and this is asked at every call.
    for tier in tiers:  # noqa: SIM110
        if policy.tiers[tier] is not Gate.NONE:
            return False
    return True


def is_silent_on_handoff(
    policy: Policy, relation: Relation, *, tiers: tuple[Tier, ...], has_method: bool, unverified: int
) -> bool:
    """Return whether a policy says nothing about a handoff, whatever else is known of it but who may read what."""
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
    """Return what the policy says about a call; nothing if it just goes on."""
    what = f"{facts.agent} calls {facts.tool}" + ("" if facts.target is None else f" on {facts.target}")
    rule = next((rule for rule in policy.rules if rule.on is Subject.CALL and _fits_call(rule, facts)), None)
    return tuple(_gated(rule, facts.tiers, policy, what))


def judge_handoff(facts: HandoffFacts, policy: Policy) -> tuple[GateDecision, ...]:
    """Return what the policy says about a handoff; nothing if it just goes on."""
    what = f"a {facts.relation} handoff to {facts.to}"
    rule = next((rule for rule in policy.rules if rule.on is Subject.HANDOFF and _fits_handoff(rule, facts)), None)
    return (
        *_gated(rule, facts.tiers, policy, what),
        *_find_lacks(facts, policy),
        *_find_limits(facts, policy),
    )


def decide(decisions: Iterable[GateDecision], *, enforced: bool) -> GateDecision | None:
    """Return the strictest decision that takes effect, the first of several; None if nothing stands in the way.

    Of two that take a person, the one that takes more of them is stricter: what else holds a call must not hide it.
    """
    found = [decision for decision in decisions if decision.takes_effect(enforced=enforced)]
    return max(found, key=lambda decision: (STRICTNESS.index(decision.gate), decision.approvals), default=None)


def may_let_go_on(gate: Gate, by: str, *, worker: AgentId, principal: str | None = None) -> bool:
    """Return whether somebody may open a gate: to approve takes a person, and nobody confirms their own work.

    A service or another program confirms only what was asked for in its own name (`principal`).
    """
    if gate is Gate.DENY or is_user(by):
        return gate is not Gate.DENY
    if by.startswith("agent:"):
        return gate is not Gate.APPROVE and by != f"agent:{worker}"
    return gate is Gate.NONE or (gate is Gate.CONFIRM and by == principal)


def is_for_approvers(gate: Gate) -> bool:
    """Return whether what waits at a gate is for approvers, with their keys and within their scopes.

    To confirm is for whoever asked for it, who may be an agent, and no agent has such a key.
    """
    return gate is not Gate.CONFIRM


def takes_proof(policy: Policy, gate: Gate, *, enrolled: bool) -> bool:
    """Return whether what waits at a gate takes a decision that an approver's key signed.

    `enrolled` says whether anybody has such a key: without a word in the policy, that is what counts.
    """
    return is_for_approvers(gate) and (enrolled if policy.proven is None else policy.proven)


def _gated(rule: Rule | None, tiers: tuple[Tier, ...], policy: Policy, what: str) -> Iterator[GateDecision]:
    if rule is not None:
        if rule.gate is not Gate.NONE:
            sentence = f"{what}; rule {rule.name} says {rule.gate}"
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
        fits(rule.agent, facts.agent, across=True)
        and _fits_tool(rule, facts)
        and fits(rule.action, "read" if facts.reads else "write", across=True)
        and _fits_target(rule, facts)
        and (rule.tier is None or rule.tier in facts.tiers)
        and (rule.depth is None or facts.depth >= rule.depth)
    )


def _fits_tool(rule: Rule, facts: CallFacts) -> bool:
    # What lets something go on lets nothing go on that it does not name.
    names = (facts.tool,) if rule.gate is Gate.NONE else (facts.tool, *facts.kin)
    return any(fits(rule.tool, name, across=True) for name in names)


def _fits_target(rule: Rule, facts: CallFacts) -> bool:
    """Return whether a rule is about what a call acts on, as it is spelled and as where it leads.

    What holds or denies fits if either does: a link or `..` leads nobody around it. What lets something go on fits only
    if both do.
    """
    found = [fits(rule.target, spelled) for spelled in dict.fromkeys((facts.target, facts.leads_to)) if spelled]
    if not found or facts.target is None:
        return fits(rule.target, facts.target)
    return all(found) if rule.gate is Gate.NONE else any(found)


def _fits_handoff(rule: Rule, facts: HandoffFacts) -> bool:
    return (
        fits(rule.agent, facts.to, across=True)
        and (rule.relation is None or rule.relation is facts.relation)
        and _asks_for(rule, facts.may)
        and (rule.tier is None or rule.tier in facts.tiers)
        and (rule.depth is None or facts.depth >= rule.depth)
    )


def _asks_for(rule: Rule, may: tuple[str, ...]) -> bool:
    """Return whether one thing that is asked for fits both patterns, the action's and the target's."""
    if rule.action is None and rule.target is None:
        return True
    asked = [(action, target or None) for action, _, target in (each.partition(":") for each in may)]
    return any(fits(rule.action, action, across=True) and fits(rule.target, target) for action, target in asked)


def _find_lacks(facts: HandoffFacts, policy: Policy) -> Iterator[GateDecision]:
    """Yield what a handoff of this kind has to bring along, and does not."""
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
    """Yield that somebody is asked who may not be, or may not read what comes along, or that a chain is too long.

    The offer itself refuses what is too deep, by the same field of the `HandoffPolicy`; here it is only counted.
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
