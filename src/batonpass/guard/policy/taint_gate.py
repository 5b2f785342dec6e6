"""The taint gate: whether a call of a tainted run goes on, or waits for a person.

A model that has read text from outside may be following it. Reads and reversible changes go on. A call with
consequences goes on only if terms older than that text name it exactly. A permit without a condition names the target
but not the amount: `pay:A` allows any sum to A.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from batonpass.guard.policy.gates import CallFacts, GateDecision
from batonpass.model.base.ids import is_user
from batonpass.model.base.kinds import Gate
from batonpass.model.grants.condition import holds
from batonpass.model.grants.permit import Permit
from batonpass.model.policy.policy_rules import TAINT, Tier

CONSEQUENTIAL: Final = frozenset({Tier.COSTLY, Tier.IRREVERSIBLE, Tier.EXTERNAL_WRITE, Tier.UNDECLARED})


def is_consequential(facts: CallFacts) -> bool:
    """Return whether a call changes something that is not declared to be internal and reversible."""
    return not facts.reads and not CONSEQUENTIAL.isdisjoint(facts.tiers)


def is_named(facts: CallFacts, terms: Iterable[Permit]) -> bool:
    """Return whether terms name exactly this action on this target, and the call meets their conditions.

    A pattern with wildcards names nothing in particular. A target that leads elsewhere, by a link or from another
    directory, counts as its destination. A call without a target is named by its tool or program: `call:refund`,
    `run:pytest`.
    """
    names = {*_names(facts)}
    return any(
        str(permit.pattern) in names and all(holds(condition, facts.arguments) for condition in permit.where)
        for permit in terms
    )


def _names(facts: CallFacts) -> Iterator[str]:
    target = facts.resource if facts.target is None else facts.target
    if target is None or "*" in target:
        return
    detour = facts.leads_to is not None and _segments(target) != _segments(facts.leads_to)
    actions = (facts.does,) if facts.target is None else (facts.action or "write", facts.tool)
    for action in actions:
        if not detour:
            yield f"{action}:{target}"
        if facts.leads_to is not None and "*" not in facts.leads_to:
            yield f"{action}:{facts.leads_to}"


def _segments(target: str) -> tuple[bool, list[str]]:
    return target.startswith("/"), [segment for segment in target.split("/") if segment not in {"", "."}]


def judge_tainted_call(facts: CallFacts, terms: Iterable[Permit], origin: str) -> GateDecision | None:
    """Return the decision that holds a call of a tainted run; None if the call goes on."""
    if not is_consequential(facts) or is_named(facts, terms):
        return None
    what = f"{facts.agent} calls {facts.tool}" + ("" if facts.target is None else f" on {facts.target}")
    sentence = f"{what}, and content from outside has reached it ({origin}); no older terms name this call"
    return GateDecision(gate=Gate.APPROVE, rule=TAINT, line=None, sentence=sentence)


def may_endorse(by: str) -> bool:
    """Return whether somebody is a person: only people answer for content from outside."""
    return is_user(by)
