"""Taint: whether a call of a run that knows content from outside goes on, or waits for a person.

A model that has read what somebody outside wrote may be doing what they want. What it reads and what can be undone
goes on; what has consequences goes on only where it was named, word for word, before any of that came in.
"""

from collections.abc import Collection
from typing import Final

from batonpass.guard.gates import CallFacts, Decision
from batonpass.model.ids import is_user
from batonpass.model.kinds import Gate
from batonpass.model.rules import TAINT, Tier

CONSEQUENTIAL: Final = frozenset({Tier.COSTLY, Tier.IRREVERSIBLE, Tier.EXTERNAL_WRITE, Tier.UNDECLARED})


def is_consequential(facts: CallFacts) -> bool:
    """Return whether a call changes something, and nobody says that this stays with us and can be undone."""
    return not facts.reads and not CONSEQUENTIAL.isdisjoint(facts.tiers)


def is_named(facts: CallFacts, terms: Collection[str]) -> bool:
    """Return whether terms name this very action on this very target. A pattern names nothing in particular.

    A target that leads elsewhere, by a link or from another directory, is what it leads to.
    """
    if facts.target is None or "*" in facts.target:
        return False
    detour = facts.leads_to is not None and _segments(facts.target) != _segments(facts.leads_to)
    meant = facts.leads_to if detour else facts.target
    return not {f"{action}:{meant}" for action in (facts.action or "write", facts.tool)}.isdisjoint(terms)


def _segments(target: str) -> tuple[bool, list[str]]:
    return target.startswith("/"), [segment for segment in target.split("/") if segment not in {"", "."}]


def judge_tainted_call(facts: CallFacts, terms: Collection[str], origin: str) -> Decision | None:
    """Return what holds a call of a run to which something came from outside; None if it goes on."""
    if not is_consequential(facts) or is_named(facts, terms):
        return None
    what = f"{facts.agent} calls {facts.tool}" + ("" if facts.target is None else f" on {facts.target}")
    sentence = f"{what}, and knows what came from outside ({origin}); no terms older than that name it"
    return Decision(gate=Gate.APPROVE, rule=TAINT, line=None, sentence=sentence)


def may_endorse(by: str) -> bool:
    """Return whether somebody is a person: nobody else answers for what a stranger wrote."""
    return is_user(by)
