"""What a baton points at is there, is one thing, and is still so."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest

from batonpass.guard.baton.problem import Problem, Whom
from batonpass.guard.baton.referential_drift import (
    find_drift,
    find_names_with_two_digests,
    find_open_references,
    find_pointing_task,
    find_stale_claims,
    find_unresolved,
)
from batonpass.model.base.kinds import Part
from batonpass.model.baton.baton import Baton, Brief
from batonpass.model.baton.items import Artifact, Claim, Constraint, Decision, RejectedPath, Statement, WorkItem
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import (
    DAY,
    LAX,
    LONG,
    NOON,
    OTHER,
    a_baton,
    a_brief,
    an_artifact,
    erased,
    kept,
    known,
)

WEEKLY = HandoffPolicy(oldest=timedelta(days=7))


def found(problems: Iterable[Problem]) -> list[tuple[str, bool]]:
    return [(problem.check, problem.blocking) for problem in problems]


def test_a_baton_that_points_at_what_it_holds_has_no_drift() -> None:
    """References that the baton itself resolves are no drift."""
    baton = a_baton(an_artifact(), task="Sum artifact:rows.csv")

    assert [] == list(find_drift(baton, known(kept()), WEEKLY))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Sum artifact:rows.csv.", id="an artifact, at the end of a sentence"),
        pytest.param("Sum (artifact:rows.csv), then stop", id="an artifact, in brackets"),
        pytest.param("Sum artifact:`rows.csv`", id="an artifact, marked as code"),
        pytest.param("Sum artifact:rows.csv,artifact:page.html", id="two artifacts with a comma between them"),
        pytest.param("Sum artifact:rows.csv#L3", id="a line of an artifact"),
        pytest.param("Sum artifact:my table.csv", id="an artifact whose name has a space"),
        pytest.param("Use claim:count:rows", id="a claim whose key has a colon"),
        pytest.param("Keep to decision:0003", id="a decision, by the end of its id"),
        pytest.param("Keep to decision:content_01jd2m00000000000000000009", id="a decision whose words were erased"),
        pytest.param("Like run:7f3a", id="the root run"),
        pytest.param("Like run:run_01jd2m00000000000000009c1e", id="the parent run, by its whole id"),
        pytest.param("Like run:9C1E", id="an id in capitals"),
        pytest.param("Part of handoff:ha1f", id="the handoff itself"),
    ],
)
def test_what_the_baton_holds_resolves(text: str) -> None:
    """Names, keys and the last characters of ids resolve in the baton."""
    baton = a_baton(
        an_artifact("rows.csv"),
        Claim("counted", key="count:rows", value="3"),
        Decision("half-even"),
        an_artifact("page.html", untrusted=True),
        an_artifact("my table.csv"),
        task=text,
    )
    baton = a_baton(items=(*baton.items, erased(Part.DECISION)), task=text)

    assert [] == list(find_open_references(baton))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("run: make test", id="a label"),
        pytest.param("Use npm run:dev", id="a script"),
        pytest.param("See urn:run:7f3b", id="a URN"),
        pytest.param("See https://ci.example/run:7f3b", id="an address"),
        pytest.param("Document the artifact:<name> syntax", id="a placeholder"),
        pytest.param("Print artifact:{name}", id="a template"),
        pytest.param("Print artifact:...", id="an ellipsis"),
        pytest.param("The artifact: a table", id="prose"),
        pytest.param("pre-run:7f3b", id="a longer word"),
    ],
)
def test_what_only_looks_like_a_reference_is_none(text: str) -> None:
    """A colon alone does not make a reference."""
    assert [] == list(find_open_references(a_baton(task=text)))


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        pytest.param("Sum artifact:lost.csv.", "artifact:lost.csv", id="an artifact that is not carried"),
        pytest.param("Use claim:rate!", "claim:rate", id="a claim that nobody made"),
        pytest.param("Keep to decision:9z9z", "decision:9z9z", id="a decision that nobody took"),
        pytest.param("Keep to decision:42", "decision:42", id="too little of an id"),
        pytest.param("Like run:7f3b", "run:7f3b", id="another run"),
        pytest.param("After handoff:00aa", "handoff:00aa", id="another handoff"),
        pytest.param("Keep to decision:0001", "decision:0001", id="an item that is no decision"),
    ],
)
def test_a_reference_that_resolves_nowhere_is_found(text: str, reference: str) -> None:
    """It blocks in the task, unless the ledger knows it."""
    baton = a_baton(Statement("Fix invoice rounding"), task=text)

    assert [reference] == list(find_open_references(baton))
    assert [("referential-drift.unresolved", True)] == found(find_unresolved(baton, known()))
    assert [] == list(find_unresolved(baton, known(resolves=frozenset({reference}))))


@pytest.mark.parametrize(
    "baton",
    [
        pytest.param(a_baton(brief=a_brief(rationale="see run:7f3b")), id="in the rationale"),
        pytest.param(a_baton(Statement("see run:7f3b")), id="in the intent"),
        pytest.param(a_baton(Constraint("see run:7f3b")), id="in a constraint"),
        pytest.param(a_baton(WorkItem("done", how="test", evidence="run:7f3b")), id="in evidence"),
        pytest.param(a_baton(RejectedPath("floats", why="run:7f3b")), id="in the reason of a rejected path"),
        pytest.param(a_baton(Decision("ints", conditions=("run:7f3b",))), id="in the condition of a decision"),
    ],
)
def test_elsewhere_it_is_reported(baton: Baton) -> None:
    """What is only told along does not block."""
    assert [("referential-drift.unresolved", False)] == found(find_unresolved(baton, known()))


def test_criteria_block_and_a_reference_is_found_once() -> None:
    """A reference that is needed blocks, however often it is told elsewhere."""
    baton = a_baton(Statement("run:7f3b"), brief=Brief(criteria=("like run:7f3b, and run:7f3b",)))

    assert [("referential-drift.unresolved", True)] == found(find_unresolved(baton, known()))


def test_the_name_of_an_artifact_is_not_searched() -> None:
    """What an artifact is called is data, and no reference."""
    assert [] == list(find_open_references(a_baton(an_artifact("run:7f3b", source="run:7f3b"))))


@pytest.mark.parametrize(
    ("artifacts", "expected"),
    [
        pytest.param(
            [an_artifact(), an_artifact(sha256=OTHER)],
            ["referential-drift.two-digests"],
            id="one name, two digests",
        ),
        pytest.param(
            [an_artifact(), an_artifact(sha256=OTHER, untrusted=True)],
            ["referential-drift.two-digests"],
            id="ours and one from outside",
        ),
        pytest.param([an_artifact(), an_artifact()], [], id="the same bytes twice"),
        pytest.param([an_artifact(), an_artifact("other.csv", sha256=OTHER)], [], id="two names"),
    ],
)
def test_a_name_for_two_things_is_found(artifacts: list[Artifact], expected: list[str]) -> None:
    """Whoever reads a name must know which bytes are meant."""
    problems = list(find_names_with_two_digests(a_baton(*artifacts)))

    assert [(check, True) for check in expected] == found(problems)


@pytest.mark.parametrize(
    ("as_of", "policy", "expected"),
    [
        pytest.param(NOON - 8 * DAY, WEEKLY, ["referential-drift.stale"], id="older than a week"),
        pytest.param(NOON - 7 * DAY, WEEKLY, [], id="exactly a week old"),
        pytest.param(NOON + DAY, WEEKLY, [], id="of tomorrow"),
        pytest.param(None, WEEKLY, [], id="without a date"),
        pytest.param(NOON - 8 * DAY, LAX, [], id="no limit"),
    ],
)
def test_a_claim_that_is_too_old_is_found(as_of: datetime | None, policy: HandoffPolicy, expected: list[str]) -> None:
    """A claim is as old as its date says, and the policy says how old it may be."""
    problems = list(find_stale_claims(a_baton(Claim("the rate is 19 %", as_of=as_of)), known(), policy))

    assert [(check, True) for check in expected] == found(problems)
    assert {Whom.RECEIVER} >= {problem.whom for problem in problems}


def test_a_task_that_only_points_blocks() -> None:
    """The receiver of "do it" cannot know what it is."""
    problems = list(find_pointing_task(a_baton(task="Do it.", brief=Brief())))

    assert ['Which file, artifact or result does the task "Do it." mean?'] == [problem.question for problem in problems]
    assert [("referential-drift.pointing-task", True)] == found(problems)


@pytest.mark.parametrize(
    ("values", "brief"),
    [
        pytest.param([an_artifact()], Brief(), id="an artifact"),
        pytest.param([an_artifact(untrusted=True)], Brief(), id="something from outside"),
        pytest.param([], Brief(criteria=("total() rounds half-even",)), id="a criterion"),
        pytest.param([], Brief(expects=("src/invoice.py",)), id="what must change"),
        pytest.param([], Brief(inputs=("rows.csv",)), id="what it needs"),
    ],
)
def test_a_task_may_point_at_what_travels_with_it(values: list[Artifact], brief: Brief) -> None:
    """A task such as "review this" is clear when there is a this."""
    assert [] == list(find_pointing_task(a_baton(*values, task="Review this", brief=brief)))


def test_long_names_are_asked_about_in_25_words() -> None:
    """References, names and claims of 100,000 characters do not make a long question."""
    baton = a_baton(
        an_artifact(LONG),
        an_artifact(LONG, sha256=OTHER),
        Claim(LONG, as_of=NOON - 8 * DAY),
        task="Sum artifact:" + "x" * 100_000,
    )
    pointing = a_baton(task="do it " * 20_000, brief=Brief())
    problems = [*find_drift(baton, known(), WEEKLY), *find_drift(pointing, known(), WEEKLY)]

    assert [True] * 4 == [len(problem.question.split()) <= 25 for problem in problems]
