"""Signal corruption: whether a baton arrived as it was sent, and does not contradict itself."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from batonpass.guard.baton.known_facts import KeptContent, KnownFacts
from batonpass.guard.baton.problem import Problem, Settles, problem_of, quote
from batonpass.guard.constraints.comparison import ORDERING, Fit, Reading, compare, read_text
from batonpass.model.baton.baton import Baton
from batonpass.model.baton.items import Artifact, Claim, Operator, Report, WorkItem
from batonpass.model.policy.handoff_policy import HandoffPolicy

_COUNTS: Final = ("count:", "rows:")
_ANY_BYTES: Final = "application/octet-stream"
_ANY_TEXT: Final = "text/plain"
_COMPARED: Final = (Artifact, Claim, WorkItem, Report)


class _Limit(NamedTuple):
    """The operator, value and unit of a typed constraint."""

    operator: Operator
    value: str
    unit: str | None


class _Said(NamedTuple):
    """A claim with a key and a value."""

    key: str
    value: str
    unit: str | None
    as_of: datetime | None

    def read(self) -> Reading | None:
        return read_text(self.value)

    def read_unit(self) -> Reading | None:
        return self.unit


def find_corruption(baton: Baton, known: KnownFacts, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield every signal corruption of a baton."""
    if known.contents:
        yield from find_changed_items(baton, known)
    if baton.by_kind.keys().isdisjoint(_COMPARED):
        return  # all further checks are about these, and most batons of small tasks carry none
    yield from find_changed_bodies(baton, known)
    yield from find_other_sizes(baton, known)
    yield from find_other_bytes(baton, known)
    yield from find_other_media_types(baton, known)
    yield from find_unreadable(baton, known)
    yield from find_other_units(baton)
    yield from find_broken_types(baton)
    yield from find_broken_ranges(baton)
    yield from find_broken_enums(baton)
    yield from find_two_values(baton)
    yield from find_disagreeing_counts(baton)
    yield from find_unverified_work(baton, policy)
    yield from find_missing_outputs(baton)


def find_changed_items(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the items whose content no longer has the digest to which their receipt committed."""
    for item in baton.items:
        kept = known.contents.get(item.id)
        if kept is not None and not kept.digest_ok:
            yield problem_of(
                "signal-corruption.item-digest",
                f"The bytes of {item.part} {item.id} do not have the digest under which they were recorded.",
                f"Can you record the {item.part} {item.id} again?",
                settles=Settles.CHECK,
            )


def find_changed_bodies(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the artifacts whose body no longer has the digest to which its receipt committed."""
    for artifact, kept in _reachable(baton, known):
        if not kept.digest_ok:
            yield problem_of(
                "signal-corruption.artifact-digest",
                f"The bytes of {quote(artifact.name)} do not have the digest under which they were recorded.",
                f"Can you attach {quote(artifact.name)} again, unchanged?",
                settles=Settles.CHECK,
            )


def find_other_sizes(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the intact artifacts whose size is not the declared one."""
    for artifact, kept in _reachable(baton, known):
        if kept.digest_ok and kept.size != artifact.size:
            yield problem_of(
                "signal-corruption.artifact-size",
                f"{quote(artifact.name)} has {kept.size} bytes and is said to have {artifact.size}.",
                f"Is {kept.size} the right size of {quote(artifact.name)} in bytes, or is {artifact.size}?",
                settles=Settles.CHECK,
            )


def find_other_bytes(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the intact artifacts of the declared size whose sha256 is not the declared one."""
    for artifact, kept in _reachable(baton, known):
        if kept.digest_ok and kept.size == artifact.size and kept.sha256 != artifact.sha256:
            found, said = kept.sha256[:8], artifact.sha256[:8]
            yield problem_of(
                "signal-corruption.artifact-sha256",
                f"The sha256 of {quote(artifact.name)} begins with {found} and is said to begin with {said}.",
                f"Does the sha256 of {quote(artifact.name)} begin with {found}, or with {said}?",
                settles=Settles.CHECK,
            )


def find_other_media_types(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the artifacts whose media type, where the relay knows it, is not the declared one."""
    for artifact, kept in _reachable(baton, known):
        if kept.media_type is not None and not _covers(kept.media_type, artifact.media_type):
            found, said = quote(kept.media_type), quote(artifact.media_type)
            yield problem_of(
                "signal-corruption.media-type",
                f"{quote(artifact.name)} is {found} and is said to be {said}.",
                f"Is {quote(artifact.name)} of type {found} or {said}?",
            )


def find_unreadable(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the artifacts that are declared as JSON or CSV and are not. An input that nobody can read blocks."""
    for artifact, kept in _reachable(baton, known):
        if kept.fault is not None:
            needed = artifact.name in baton.brief.inputs
            yield problem_of(
                "signal-corruption.unreadable",
                f"{quote(artifact.name)} {kept.fault}.",
                f"Can you attach {quote(artifact.name)} again, complete?",
                blocking=needed,
                doubtful=not needed,
                settles=Settles.CHECK if needed else Settles.ANSWER,
            )


def find_other_units(baton: Baton) -> Iterator[Problem]:
    """Yield the claims in another unit than a constraint with the same key. A missing unit is no conflict."""
    for limit, said in _limited(baton):
        if not _in_one_unit(limit, said):
            wanted, found = quote(str(limit.unit), words=2), quote(str(said.unit), words=2)
            yield problem_of(
                "signal-corruption.unit",
                f"{quote(said.key)} is constrained in {wanted} and claimed in {found}.",
                f"Is {quote(said.key)} = {quote(said.value, words=2)} in {wanted} or in {found}?",
            )


def find_broken_types(baton: Baton) -> Iterator[Problem]:
    """Yield the claims that cannot be compared with a constraint with the same key."""
    for limit, said, fit in _compared(baton):
        if fit is Fit.INCOMPARABLE:
            yield _breaks("signal-corruption.type", limit, said)


def find_broken_ranges(baton: Baton) -> Iterator[Problem]:
    """Yield the claims outside the range of a constraint with the same key."""
    for limit, said, fit in _compared(baton):
        if fit is Fit.FAILS and limit.operator in ORDERING:
            yield _breaks("signal-corruption.range", limit, said)


def find_broken_enums(baton: Baton) -> Iterator[Problem]:
    """Yield the claims whose value is not among those that a constraint with the same key allows."""
    for limit, said, fit in _compared(baton):
        if fit is Fit.FAILS and limit.operator not in ORDERING:
            yield _breaks("signal-corruption.enum", limit, said)


def find_two_values(baton: Baton) -> Iterator[Problem]:
    """Yield the keys for which claims have different values. It does not block if they are of different times."""
    for key, saids in _by_key(baton).items():
        if not key.startswith(_COUNTS):
            yield from _disagreement("signal-corruption.two-values", key, saids)


def find_disagreeing_counts(baton: Baton) -> Iterator[Problem]:
    """Yield the counts, `count:NAME` or `rows:NAME`, on which claims disagree."""
    for key, saids in _by_key(baton).items():
        if key.startswith(_COUNTS):
            yield from _disagreement("signal-corruption.counts", key, saids)


def find_unverified_work(baton: Baton, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield the completed work that nobody verified, if the policy requires verification."""
    if not policy.verified_only:
        return
    # Results of a child are verified by its parent before it hands on, and refused there: see `unverified_results`.
    for work in (item.value for item in baton.items if isinstance(item.value, WorkItem)):
        if not work.verified:
            yield problem_of(
                "signal-corruption.unverified",
                f"{quote(work.what)} is completed, and nobody has verified it.",
                f"Has anybody verified {quote(work.what)}?",
                settles=Settles.CHECK,
            )


def find_missing_outputs(baton: Baton) -> Iterator[Problem]:
    """Yield the outputs of completed work that are not carried.

    It does not block: an output may be a file elsewhere.
    """
    there = {artifact.name for artifact in _artifacts(baton)} | {claim.key for claim in baton.claims}
    for name in dict.fromkeys(output for work in baton.completed for output in work.outputs):
        if name not in there:
            yield problem_of(
                "signal-corruption.output-missing",
                f"Completed work names its output {quote(name)}, and no artifact of that name is carried.",
                f"Should {quote(name)} have been attached?",
                blocking=False,
            )


def _breaks(check: str, limit: _Limit, said: _Said) -> Problem:
    key, value = quote(said.key), quote(said.value, words=4)
    wanted = f"{limit.operator} {quote(limit.value, words=4)}"
    return problem_of(
        check,
        f"{key} is claimed to be {value} and must be {wanted}.",
        f"Is {key} really {value}, although it must be {wanted}?",
    )


def _disagreement(check: str, key: str, saids: list[_Said]) -> Iterator[Problem]:
    for reading in (_Said.read, _Said.read_unit):
        # Compared as read: 1.0 and 1.00 are one value, and a missing unit agrees with every unit.
        readings = [(read, said) for said in saids if (read := reading(said)) is not None]
        first: dict[Reading, _Said] = {}
        for read, said in readings:
            first.setdefault(read, said)
        if len(first) > 1:
            one, other, *_ = first.values()
            yield problem_of(
                check,
                f"{quote(key)} is claimed to be {_shown(one)} and to be {_shown(other)}.",
                f"Which value of {quote(key)} is right: {_shown(one)} or {_shown(other)}?",
                blocking=_at_one_time(readings),
            )
            return


def _at_one_time(readings: list[tuple[Reading, _Said]]) -> bool:
    """Return whether claims about the same time differ. A claim without a date is about every time."""
    moments = {said.as_of for _, said in readings}
    return None in moments or len({(said.as_of, reading) for reading, said in readings}) > len(moments)


def _shown(said: _Said) -> str:
    return quote(said.value if said.unit is None else f"{said.value} {said.unit}")


def _artifacts(baton: Baton) -> Iterator[Artifact]:
    return chain(baton.artifacts, baton.untrusted)


def _reachable(baton: Baton, known: KnownFacts) -> Iterator[tuple[Artifact, KeptContent]]:
    for artifact in _artifacts(baton):
        if (kept := known.contents.get(artifact.body)) is not None:
            yield artifact, kept


def _covers(found: str, declared: str) -> bool:
    # Generic bytes, or generic text, do not contradict a more specific declaration.
    return found in {declared, _ANY_BYTES} or (found == _ANY_TEXT and declared.startswith("text/"))


def _by_key(baton: Baton) -> Mapping[str, list[_Said]]:
    saids: dict[str, list[_Said]] = defaultdict(list)
    for claim in baton.claims:
        if claim.key is not None and claim.value is not None:
            saids[claim.key].append(_Said(claim.key, claim.value, claim.unit, claim.as_of))
    return saids


def _limited(baton: Baton) -> Iterator[tuple[_Limit, _Said]]:
    saids = _by_key(baton)
    for given in dict.fromkeys(baton.constraints):
        if given.key is not None and given.operator is not None and given.value is not None:
            limit = _Limit(Operator(given.operator), given.value, given.unit)
            yield from ((limit, said) for said in saids.get(given.key, ()))


def _compared(baton: Baton) -> Iterator[tuple[_Limit, _Said, Fit]]:
    for limit, said in _limited(baton):
        if _in_one_unit(limit, said):
            yield limit, said, compare(limit.operator, limit.value, said.value)


def _in_one_unit(limit: _Limit, said: _Said) -> bool:
    return None in {limit.unit, said.unit} or limit.unit == said.unit
