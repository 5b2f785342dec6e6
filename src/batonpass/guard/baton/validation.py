"""Validation at receipt: finds everything that is wrong with a baton before anybody acts on it."""

from collections.abc import Iterator
from itertools import chain

from batonpass.guard.baton.capability import find_capability_gaps
from batonpass.guard.baton.corruption import find_corruption
from batonpass.guard.baton.gaps import find_gaps
from batonpass.guard.baton.known_facts import KnownFacts
from batonpass.guard.baton.problem import BY_FREQUENCY, Problem
from batonpass.guard.baton.prose.announcements import find_prose_gaps
from batonpass.guard.baton.prose.contradictions import find_contradictions
from batonpass.guard.baton.prose.figures import find_wrong_figures
from batonpass.guard.baton.prose.prose_reader import read_prose
from batonpass.guard.baton.prose.quantities import find_other_figures
from batonpass.guard.baton.prose.references import find_damage, find_prose_drift
from batonpass.guard.baton.prose.sources import find_absent_sources
from batonpass.guard.baton.referential_drift import find_drift
from batonpass.guard.baton.skill_fields import find_foreign_field
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import Artifact
from batonpass.model.policy.handoff_policy import HandoffPolicy


def find_in_prose(baton: Baton, known: KnownFacts, card: Card | None) -> Iterator[Problem]:
    """Yield the problems in the prose of a baton. All are doubtful: prose can be read in many ways."""
    prose = read_prose(baton)
    texts: dict[str, str] = {}
    rows: dict[str, int] = {}
    for artifact in baton.by_kind.get(Artifact, ()):
        if (kept := known.contents.get(artifact.body)) is not None:
            if kept.text is not None:
                texts[artifact.name] = kept.text
            if kept.rows is not None:
                rows[artifact.name] = kept.rows
    yield from find_prose_gaps(baton, prose)
    yield from find_wrong_figures(baton, prose, rows)
    yield from find_other_figures(baton, prose, texts)
    yield from find_contradictions(baton, prose, texts)
    yield from find_damage(prose, texts)
    yield from find_absent_sources(baton, prose, texts)
    yield from find_prose_drift(baton, prose, texts=texts, files=known.files)
    if card is not None and (card.skills or card.description):
        yield from find_foreign_field(baton, card)


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
        find_in_prose(standing, known, card),
    )
    return tuple(sorted(problems, key=lambda problem: (not problem.blocking, BY_FREQUENCY.index(problem.error))))
