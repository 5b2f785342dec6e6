"""Data gaps: whether a baton has everything that the receiver needs."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from batonpass.errors import IncompleteBatonError
from batonpass.guard.baton.known_facts import KnownFacts
from batonpass.guard.baton.placeholder import find_hollow, says_nothing
from batonpass.guard.baton.problem import Problem, Settles, problem_of, quote
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.baton import CRITERIA, EXPECTED, RATIONALE, Baton, Brief
from batonpass.model.baton.items import Artifact, Item, OpenQuestion, Report, parts_of
from batonpass.model.policy.handoff_policy import HandoffPolicy

_NOTHING_SAID: Final = Brief()
_REPORTABLE: Final = frozenset(map(str, Part))


def required_parts(relation: Relation, policy: HandoffPolicy) -> tuple[str, ...]:
    """Return the parts that the policy requires for this kind of handoff."""
    return tuple(map(str, policy.require.get(relation, ())))


def require_complete(relation: Relation, missing: tuple[str, ...], policy: HandoffPolicy) -> None:
    """Refuse a handoff that lacks a part that the policy requires. Raises `IncompleteBatonError`."""
    if not missing or not policy.require.get(relation):
        return
    required = set(required_parts(relation, policy))
    if refused := tuple([str(part) for part in missing if part in required]):
        raise IncompleteBatonError(refused, relation)


def report_gaps(
    report: Report | None, task: str, items: Iterable[Item], wanted: Iterable[str]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the wanted parts that neither a report nor the items of its run have, and parts with only placeholders.

    A part with only placeholders is missing. A report has no rationale and no criteria, so it never lacks these.
    """
    values = [item.value for item in items if item.value is not None]
    if report is not None:
        values.append(report)
    hollow = find_hollow(task, _NOTHING_SAID, values)
    said = {part for value in values for part in parts_of(value)} - hollow
    if report is not None:
        if not report.result.strip() and report.value is None and not report.completed:
            said.discard(Part.COMPLETED)  # there is a report, and it reports nothing
        said.update(part for part in Part if part in report.none)
    return tuple(part for part in dict.fromkeys(wanted) if part in _REPORTABLE and part not in said), hollow


def find_gaps(baton: Baton, known: KnownFacts, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield every data gap of a baton."""
    # Checks of parts that a baton does not have are skipped: most have no artifacts and no questions.
    if policy.require.get(baton.relation):
        yield from find_missing_parts(baton, policy)
    if baton.brief.inputs:
        yield from find_missing_inputs(baton, known)
    if OpenQuestion in baton.by_kind:
        yield from find_blocking_questions(baton)
    if Artifact in baton.by_kind:
        yield from find_unreachable_artifacts(baton, known)
        yield from find_empty_artifacts(baton, known)
    yield from find_erased_items(baton)
    if not baton.brief.criteria:
        yield from find_missing_criteria(baton, policy)


def find_missing_parts(baton: Baton, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield the parts that the policy requires and that the sender neither gave nor declared to be none."""
    said = _said(baton)
    for part in required_parts(baton.relation, policy):
        if part in baton.missing or part not in said:
            yield problem_of(
                "data-gap.part-missing",
                f"A {baton.relation} handoff must say its {part}, and this one does not.",
                f"Which {part} belongs to the task {quote(baton.task)}, or is there none?",
            )


def find_missing_inputs(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the inputs for which there is no artifact of that name and no claim with that key.

    Words do not replace an input. An answer helps if it names an artifact or a claim that is carried, or a file that is
    in the work tree.
    """
    if not baton.brief.inputs:
        return
    there = {artifact.name for artifact in chain(baton.artifacts, baton.untrusted)}
    there |= {claim.key for claim in baton.claims if claim.key is not None}
    named = {answer.question: answer.answer.strip() for answer in baton.answers}
    for name in dict.fromkeys(baton.brief.inputs):
        question = f"Which artifact or claim is the input {quote(name)}?"
        if name not in there and (answer := named.get(question)) not in there and answer not in known.files:
            yield problem_of(
                "data-gap.input-missing",
                f"The task needs {quote(name)}, and no artifact or claim of that name is carried.",
                question,
                settles=Settles.CHECK,
            )


def find_blocking_questions(baton: Baton) -> Iterator[Problem]:
    """Yield the blocking open questions without an answer, neither under their own words nor as we phrase them."""
    answered = {answer.question for answer in baton.answers if answer.waives or not says_nothing(answer.answer)}
    for item in baton.items:
        if not isinstance(item.value, OpenQuestion) or not item.value.blocking:
            continue
        question = f"What is the answer to {quote(item.value.text, words=18)}?"
        if answered.isdisjoint({item.value.text, question}):
            yield problem_of("data-gap.question-open", f"{quote(item.value.text)} is open, and it blocks.", question)


def find_unreachable_artifacts(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the artifacts whose bytes cannot be read."""
    for artifact in chain(baton.artifacts, baton.untrusted):
        if artifact.body not in known.contents:
            yield problem_of(
                "data-gap.artifact-unreachable",
                f"The bytes of {quote(artifact.name)} cannot be reached.",
                f"Can you attach {quote(artifact.name)} again?",
                settles=Settles.CHECK,
            )


def find_empty_artifacts(baton: Baton, known: KnownFacts) -> Iterator[Problem]:
    """Yield the empty artifacts. Some are rightly so: it blocks if the task needs one, and is asked if it names one."""
    for artifact in chain(baton.artifacts, baton.untrusted):
        kept = known.contents.get(artifact.body)
        if kept is not None and kept.size == 0:
            yield problem_of(
                "data-gap.artifact-empty",
                f"{quote(artifact.name)} has no bytes.",
                f"Is {quote(artifact.name)} meant to be empty?",
                blocking=artifact.name in baton.brief.inputs,
                doubtful=artifact.name not in baton.brief.inputs and artifact.name in baton.task,
            )


def find_erased_items(baton: Baton) -> Iterator[Problem]:
    """Yield the items whose content was erased. That was done on purpose, so it never blocks."""
    for item in baton.items:
        if item.value is None:
            yield problem_of(
                "data-gap.item-erased",
                f"The words of {item.part} {item.id} were erased.",
                f"Does the task need the erased {item.part} {item.id}?",
                blocking=False,
            )


def find_missing_criteria(baton: Baton, policy: HandoffPolicy) -> Iterator[Problem]:
    """Yield a problem if nothing says when the task is done. A command that decides it counts as an answer."""
    brief = baton.brief
    if brief.criteria or brief.verify_by or CRITERIA in brief.none or CRITERIA not in EXPECTED[baton.relation]:
        return
    if CRITERIA not in required_parts(baton.relation, policy):  # otherwise it is a missing part, and blocks
        yield problem_of(
            "data-gap.criteria-missing",
            f"Nothing says when the task {quote(baton.task)} is done well.",
            f"Which one observable result shows that the task {quote(baton.task)} is done?",
            blocking=False,
        )


def _said(baton: Baton) -> set[str]:
    said: set[str] = {*[item.part for item in baton.items], *baton.brief.none}
    if baton.brief.rationale is not None:
        said.add(RATIONALE)
    if baton.brief.criteria:
        said.add(CRITERIA)
    return said
