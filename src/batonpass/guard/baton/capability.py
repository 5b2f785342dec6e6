"""Capability gaps: whether this agent can do the task here and now, or another should."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

from batonpass.guard.baton.known_facts import KnownFacts
from batonpass.guard.baton.problem import Problem, Settles, Whom, problem_of, quote
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.card import Card
from batonpass.model.policy.handoff_policy import HandoffPolicy


def find_capability_gaps(
    baton: Baton, known: KnownFacts, policy: HandoffPolicy, card: Card | None
) -> Iterator[Problem]:
    """Yield every capability gap. Fields that the receiver's card leaves open are not checked."""
    if card is not None:
        yield from find_missing_tools(baton, card)
        yield from find_missing_skills(baton, card)
        yield from find_unaccepted_media_types(baton, card)
    if baton.deadline is not None:
        yield from find_past_deadline(baton, known)
    if baton.brief.budget is not None:
        yield from find_empty_budget(baton)
    if policy.max_depth is not None:
        yield from find_too_deep(baton, known, policy)


def find_missing_tools(baton: Baton, card: Card) -> Iterator[Problem]:
    """Yield the tools that the task needs and the agent does not have."""
    for tool in _lacking(baton.brief.needs_tools, card.tools):
        yield _gap(
            "capability-gap.tool-missing",
            f"The task needs the tool {quote(tool)}, and {quote(card.agent)} does not have it.",
            _elsewhere(baton, f"has the tool {quote(tool, words=3)}"),
            settles=Settles.NO,
        )


def find_missing_skills(baton: Baton, card: Card) -> Iterator[Problem]:
    """Yield the skills that the task needs and the agent does not have."""
    for skill in _lacking(baton.brief.needs_skills, card.skills):
        yield _gap(
            "capability-gap.skill-missing",
            f"The task needs the skill {quote(skill)}, and {quote(card.agent)} does not have it.",
            _elsewhere(baton, f"has the skill {quote(skill, words=3)}"),
            settles=Settles.NO,
        )


def find_unaccepted_media_types(baton: Baton, card: Card) -> Iterator[Problem]:
    """Yield the media types of artifacts that the agent does not accept."""
    given = tuple(artifact.media_type for artifact in chain(baton.artifacts, baton.untrusted))
    for media_type in _lacking(given, card.accepts):
        yield _gap(
            "capability-gap.media-type",
            f"{quote(card.agent)} does not accept {quote(media_type)}.",
            _elsewhere(baton, f"accepts {quote(media_type)}"),
            settles=Settles.NO,
        )


def find_past_deadline(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield a problem if the deadline has passed before anybody has begun."""
    if baton.deadline is not None and baton.deadline <= known.now:
        deadline = baton.deadline.isoformat(timespec="seconds")
        yield _gap(
            "capability-gap.deadline-past",
            f"The deadline was {deadline}.",
            f"May {quote(baton.task)} be done after its deadline, {deadline}?",
        )


def find_empty_budget(baton: Baton) -> Iterator[Problem]:
    """Yield a problem for each unit of which the budget allows nothing.

    Nobody can go on without time or tokens. Some tasks need no call and some models cost nothing, so zero calls block
    only if the task needs a tool, and zero cost never blocks.
    """
    budget = baton.brief.budget
    if budget is None:
        return
    for name, blocking in (
        ("calls", bool(baton.brief.needs_tools)),
        ("seconds", True),
        ("tokens", True),
        ("cost", False),
    ):
        if getattr(budget, name) == 0:
            yield _gap(
                "capability-gap.budget-empty",
                f"The budget allows no {name}.",
                f"May the task {quote(baton.task)} use more than zero {name}?",
                blocking=blocking,
            )


def find_too_deep(baton: Baton, known: KnownFacts, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield a problem if the signed lineage is already as deep as the policy allows."""
    if policy.max_depth is not None and known.depth >= policy.max_depth:
        yield _gap(
            "capability-gap.too-deep",
            f"The lineage is {known.depth} hops deep already, and the policy allows at most {policy.max_depth}.",
            f"May {quote(baton.task)} go on although its lineage is {known.depth} hops deep already?",
        )


def _elsewhere(baton: Baton, able: str) -> str:
    return f"Should {quote(baton.task, words=4)} go to an agent that {able} instead of {quote(baton.to)}?"


def _lacking(needed: tuple[str, ...], there: tuple[str, ...] | None) -> Iterator[str]:
    if there is None:
        return iter(())
    has = frozenset(there)
    return (name for name in dict.fromkeys(needed) if name not in has)


# Only whoever routes work can say where it goes instead.
_gap: Final = partial(problem_of, whom=Whom.ROUTER, settles=Settles.YES)
