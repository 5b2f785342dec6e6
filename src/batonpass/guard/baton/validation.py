"""Validation at receipt: finds everything that is wrong with a baton before anybody acts on it."""

from itertools import chain

from batonpass.guard.baton.capability import find_capability_gaps
from batonpass.guard.baton.corruption import find_corruption
from batonpass.guard.baton.gaps import find_gaps
from batonpass.guard.baton.known_facts import KnownFacts
from batonpass.guard.baton.problem import BY_FREQUENCY, Problem
from batonpass.guard.baton.referential_drift import find_drift
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.card import Card
from batonpass.model.policy.handoff_policy import HandoffPolicy


def validate_baton(
    baton: Baton,
    *,
    known: KnownFacts,
    policy: HandoffPolicy,
    card: Card | None = None,
) -> tuple[Problem, ...]:
    """Return all problems, blocking ones first, then by how common their type is, then as found. Never raises."""
    # Results that no longer stand are told as such. Two versions of a file are no drift if one of them was superseded.
    standing = baton.standing() if baton.fates else baton
    problems = chain(
        find_corruption(baton, known, policy),
        find_gaps(standing, known, policy),
        find_drift(standing, known, policy),
        find_capability_gaps(baton, known, policy, card),
    )
    return tuple(sorted(problems, key=lambda problem: (not problem.blocking, BY_FREQUENCY.index(problem.error))))
