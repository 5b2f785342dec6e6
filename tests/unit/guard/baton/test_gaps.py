"""What the receiver cannot do without is there, or is found to be missing."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from batonpass.guard.baton.gaps import (
    find_blocking_questions,
    find_empty_artifacts,
    find_erased_items,
    find_gaps,
    find_missing_criteria,
    find_missing_inputs,
    find_missing_parts,
    find_unreachable_artifacts,
)
from batonpass.guard.baton.problem import Problem, Whom
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.baton import Answer, Brief
from batonpass.model.baton.items import Claim, Decision, OpenQuestion
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import ANA, LAX, LONG, NOON, a_baton, a_brief, an_artifact, erased, items_of, kept, known

STRICT = HandoffPolicy(require={Relation.LEAD_TO_WORKER: ("rationale", "criteria", "decision")})


def found(problems: Iterable[Problem]) -> list[tuple[str, bool]]:
    return [(problem.check, problem.blocking) for problem in problems]


def answer(question: str) -> Answer:
    return Answer(question=question, answer="yes", by=ANA, at=NOON)


def test_a_whole_baton_has_no_gap() -> None:
    """A baton with its inputs, its bytes and its criteria is complete."""
    baton = a_baton(an_artifact(), brief=a_brief(inputs=("rows.csv",)))

    assert [] == list(find_gaps(baton, known(kept()), LAX))


def test_a_required_part_that_is_missing_blocks() -> None:
    """Each part that the policy requires and nobody said is a gap; the producer is asked."""
    problems = list(find_missing_parts(a_baton(missing=("rationale", "decision")), STRICT))

    assert [("data-gap.part-missing", True)] * 2 == found(problems)
    assert (
        'Which rationale belongs to the task "Make total() round half-even", or is there none?' == problems[0].question
    )
    assert Whom.PRODUCER is problems[0].whom


def test_a_required_part_that_nobody_expects_blocks_too() -> None:
    """The policy may require what a handoff of that kind is not expected to say."""
    policy = HandoffPolicy(require={Relation.EXTERNAL_TO_AGENT: ("claim",)})
    baton = a_baton(relation=Relation.EXTERNAL_TO_AGENT)

    assert [("data-gap.part-missing", True)] == found(find_missing_parts(baton, policy))


def test_a_part_that_is_said_or_said_to_be_none_is_not_missing() -> None:
    """An explicit none is an answer."""
    baton = a_baton(Decision("half-even"), brief=a_brief(none=("rationale",)))
    other = a_baton(brief=a_brief(rationale="tax office", none=("decision",)))

    assert [] == [*find_missing_parts(baton, STRICT), *find_missing_parts(other, STRICT)]


def test_an_input_that_nothing_satisfies_blocks() -> None:
    """A needed name that no artifact and no claim has is a gap, once."""
    baton = a_baton(Claim("it has rows", key="rows", value="3"), brief=a_brief(inputs=("rates.csv", "rates.csv")))

    assert ['Which artifact or claim is the input "rates.csv"?'] == [
        p.question for p in find_missing_inputs(baton, known())
    ]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("rows.csv", id="an artifact of ours has the name"),
        pytest.param("page.html", id="an artifact from outside has the name"),
        pytest.param("rate", id="a claim has the key"),
    ],
)
def test_an_input_is_satisfied_by_name_or_key(name: str) -> None:
    """What is carried under the name is the input."""
    baton = a_baton(
        an_artifact("rows.csv"),
        an_artifact("page.html", untrusted=True),
        Claim("the rate", key="rate", value="0.19"),
        brief=a_brief(inputs=(name,)),
    )

    assert [] == list(find_missing_inputs(baton, known()))


def test_a_blocking_question_is_asked() -> None:
    """What must be answered first is asked in its own words."""
    problems = list(find_blocking_questions(a_baton(OpenQuestion("Net or gross?", blocking=True))))

    assert [("data-gap.question-open", True)] == found(problems)
    assert 'What is the answer to "Net or gross?"?' == problems[0].question


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        pytest.param(OpenQuestion("Net or gross?"), (), id="it does not block"),
        pytest.param(
            OpenQuestion("Net or gross?", blocking=True),
            (answer("Net or gross?"),),
            id="it was answered in its own words",
        ),
        pytest.param(
            OpenQuestion("Net or gross?", blocking=True),
            (answer('What is the answer to "Net or gross?"?'),),
            id="it was answered as we asked it",
        ),
    ],
)
def test_other_open_questions_are_no_gap(question: OpenQuestion, answers: tuple[Answer, ...]) -> None:
    """An open question blocks only if its author says so and nobody has answered."""
    assert [] == list(find_blocking_questions(a_baton(question, answers=answers)))


def test_an_artifact_without_bytes_to_be_had_blocks() -> None:
    """What was declared and cannot be read is a gap."""
    assert [("data-gap.artifact-unreachable", True)] == found(
        find_unreachable_artifacts(a_baton(an_artifact()), known()),
    )
    assert [] == list(find_unreachable_artifacts(a_baton(an_artifact()), known(kept())))


@pytest.mark.parametrize(
    ("inputs", "data", "expected"),
    [
        pytest.param(("rows.csv",), b"", [("data-gap.artifact-empty", True)], id="an empty input blocks"),
        pytest.param((), b"", [("data-gap.artifact-empty", False)], id="another empty file is reported"),
        pytest.param(("rows.csv",), b"1", [], id="one byte is not empty"),
    ],
)
def test_an_empty_artifact_is_found(inputs: tuple[str, ...], data: bytes, expected: list[tuple[str, bool]]) -> None:
    """Some files are rightly empty; what the task needs is not."""
    baton = a_baton(an_artifact(), brief=a_brief(inputs=inputs))

    assert expected == found(find_empty_artifacts(baton, known(kept(data))))


def test_an_erased_item_is_reported() -> None:
    """Words that were erased are missed, and do not block."""
    baton = a_baton(items=(*items_of(Decision("half-even")), erased(Part.DECISION)))

    assert [("data-gap.item-erased", False)] == found(find_erased_items(baton))
    assert [] == list(find_erased_items(a_baton(Decision("half-even"))))


def test_a_task_without_criteria_is_reported() -> None:
    """Nobody says when it is done: that is reported and does not block."""
    assert [("data-gap.criteria-missing", False)] == found(find_missing_criteria(a_baton(brief=Brief()), LAX))


@pytest.mark.parametrize(
    ("brief", "relation", "policy"),
    [
        pytest.param(Brief(criteria=("green",)), Relation.LEAD_TO_WORKER, LAX, id="there are criteria"),
        pytest.param(Brief(verify_by=("make test",)), Relation.LEAD_TO_WORKER, LAX, id="a command decides"),
        pytest.param(Brief(none=("criteria",)), Relation.LEAD_TO_WORKER, LAX, id="there are said to be none"),
        pytest.param(Brief(), Relation.WORKER_TO_LEAD, LAX, id="results need no criteria"),
        pytest.param(Brief(), Relation.LEAD_TO_WORKER, STRICT, id="it is reported as a missing part already"),
    ],
)
def test_criteria_are_not_missed_where_none_are_due(brief: Brief, relation: Relation, policy: HandoffPolicy) -> None:
    """The check is about tasks whose end nobody could recognise."""
    assert [] == list(find_missing_criteria(a_baton(brief=brief, relation=relation), policy))


def test_a_name_of_100_000_characters_is_asked_about_in_25_words() -> None:
    """Whoever chooses the names does not choose the length of our questions."""
    brief = Brief(inputs=(LONG,))
    baton = a_baton(an_artifact(LONG + "!"), OpenQuestion(LONG, blocking=True), task=LONG, brief=brief)
    policy = replace(LAX, require={Relation.LEAD_TO_WORKER: ("rationale",)})
    problems = list(find_gaps(baton, known(), policy))

    assert [True] * 5 == [len(problem.question.split()) <= 25 for problem in problems]
