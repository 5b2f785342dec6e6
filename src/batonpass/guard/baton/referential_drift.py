"""Referential drift: whether a baton refers to something that does not exist, is out of date, or is ambiguous."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Final

from batonpass.guard.baton.known_facts import KnownFacts
from batonpass.guard.baton.problem import Problem, Settles, Whom, problem_of, quote
from batonpass.guard.baton.text_memory import remembered
from batonpass.guard.baton.vague_task import points_only
from batonpass.model.base.kinds import Part
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import (
    Artifact,
)
from batonpass.model.policy.handoff_policy import HandoffPolicy

# A name ends where the sentence goes on. A name that contains such a character is recognised by its beginning.
_NAME: Final = re.compile(r'[^\s,;"#]+')
# Not inside a longer word, a URN or an address: `urn:run:7f3a`, `pre-run:7f3a`.
_KINDS: Final = ("artifact", "claim", "decision", "run", "handoff")
_REFERENCE: Final = re.compile(rf"(?<![\w:/.@-])({'|'.join(_KINDS)}):({_NAME.pattern})")
_AFTER_NAMES: Final = ".:!?…)]}>'`’”"
_PLACEHOLDERS: Final = ("<", "{", "[", "$", "*", "%", "…", "...")

# `run:dev` is the name of a script; an id almost always has a digit.
_RUN_ENDING: Final = re.compile(r"(?=.*[0-9])(?:run_)?[0-9a-hjkmnp-tv-z]{4,26}")
_SHORTEST_ENDING: Final = 4

_DATE: Final = "%Y-%m-%d"
_SHA_SHOWN: Final = 8


def find_drift(baton: Baton, known: KnownFacts, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield every referential drift of a baton."""
    if known.references is None or known.references:
        yield from find_unresolved(baton, known)
    if Artifact in baton.by_kind:
        yield from find_names_with_two_digests(baton)
    if policy.claim_age is not None:
        yield from find_stale_claims(baton, known, policy)
    if not baton.brief.criteria:
        yield from find_pointing_task(baton)


def find_unresolved(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the references that neither the baton nor the ledger resolves."""
    references = find_open_references(baton) if known.references is None else known.references
    for reference, needed in references.items():
        if reference in known.resolves:
            continue
        yield problem_of(
            "referential-drift.unresolved",
            f"{quote(reference)} is neither in the baton nor in the ledger.",
            f"Which artifact, claim, decision, run or handoff is meant by {quote(reference)}?",
            blocking=needed,
        )


def find_open_references(baton: Baton) -> dict[str, bool]:
    """Return the references that the baton itself does not resolve, and whether the task depends on them.

    Look them up for `KnownFacts.resolves`, and pass them on as `KnownFacts.references`.
    """
    needed = [baton.task, *baton.brief.criteria]
    told = baton.told if baton.brief.rationale is None else (baton.brief.rationale, *baton.told)
    if True not in _may_refer.each((*needed, *told)):
        return {}  # as most batons
    resolved = _resolved_by(baton)
    found: dict[str, bool] = {}
    for texts, blocking in ((needed, True), (told, False)):
        for kind, name in chain.from_iterable(map(_REFERENCE.findall, filter(_may_refer, texts))):
            reference = _clean(kind, name)
            if reference is not None and resolved.isdisjoint({reference, f"{kind}:{name}"}):
                found.setdefault(reference, blocking)
    return found


def find_names_with_two_digests(baton: Baton) -> Iterator[Problem]:
    """Yield the names under which artifacts with different bytes are carried."""
    digests: dict[str, dict[str, None]] = defaultdict(dict)
    for artifact in chain(baton.artifacts, baton.untrusted):
        digests[artifact.name][artifact.sha256] = None
    for name, found in digests.items():
        if len(found) > 1:
            first, *_, last = (digest[:_SHA_SHOWN] for digest in found)
            yield problem_of(
                "referential-drift.two-digests",
                f"{quote(name)} is the name of {len(found)} artifacts with different digests.",
                f"Which {quote(name)} is meant: the one whose sha256 begins with {first}, or {last}?",
            )


def find_stale_claims(baton: Baton, known: KnownFacts, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield the claims that are older than the policy allows. A claim without a date has no age."""
    if policy.claim_age is None:
        return
    for claim in baton.claims:
        if claim.as_of is not None and known.now - claim.as_of > policy.claim_age:
            yield problem_of(
                "referential-drift.stale",
                f"{quote(claim.what)} was so on {claim.as_of.strftime(_DATE)}, longer ago than the policy allows.",
                f"Does this still hold: {quote(claim.what)}, as of {claim.as_of.strftime(_DATE)}?",
                whom=Whom.RECEIVER,
                settles=Settles.YES,
            )


def find_pointing_task(baton: Baton) -> Iterator[Problem]:
    """Yield a task that only points at something, unless the brief or an artifact names that thing."""
    brief = baton.brief
    pointed_at = brief.criteria or brief.inputs or brief.expects or baton.artifacts or baton.untrusted
    if not pointed_at and points_only(baton.task):
        yield problem_of(
            "referential-drift.pointing-task",
            f"The task {quote(baton.task)} points at something that does not travel with it.",
            f"Which file, artifact or result does the task {quote(baton.task)} mean?",
        )


@remembered
def _may_refer(text: str) -> bool:
    # Most texts refer to nothing, and searching for five words takes a tenth of the time of any regular expression.
    return ":" in text and (
        "artifact:" in text or "claim:" in text or "decision:" in text or "run:" in text or "handoff:" in text
    )


def _clean(kind: str, name: str) -> str | None:
    cleaned = name.strip("`'").rstrip(_AFTER_NAMES)
    if not cleaned or name.startswith(_PLACEHOLDERS):
        return None
    if kind in {"decision", "run", "handoff"}:
        cleaned = cleaned.lower()
    if kind == "run" and _RUN_ENDING.fullmatch(cleaned) is None:
        return None
    return f"{kind}:{cleaned}"


def _resolved_by(baton: Baton) -> frozenset[str]:
    names = (
        ("artifact", [artifact.name for artifact in chain(baton.artifacts, baton.untrusted)]),
        ("claim", [claim.key for claim in baton.claims if claim.key is not None]),
    )
    ids = (
        ("decision", [item.id for item in baton.of(Part.DECISION)]),
        ("run", [baton.root, baton.parent]),
        ("handoff", [baton.handoff]),
    )
    resolved = {f"{kind}:{begins.group()}" for kind, given in names for begins in map(_NAME.search, given) if begins}
    for kind, given in ids:
        resolved |= {f"{kind}:{ending}" for identifier in given for ending in _endings(identifier)}
    return frozenset(resolved)


def _endings(identifier: str) -> Iterator[str]:
    return (identifier[-length:] for length in range(_SHORTEST_ENDING, len(identifier) + 1))
