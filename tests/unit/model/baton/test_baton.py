"""The baton: everything that travels with a handoff, and what is missing from it."""

from typing import Any, Final

import pytest
from msgspec.structs import fields, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.ids import AgentId, ContentId
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.baton import (
    BRIEF_TEXTS,
    EXPECTED,
    INHERITED,
    PARTS,
    Answer,
    Baton,
    Brief,
    Budget,
    missing_parts,
    within,
)
from batonpass.model.baton.items import (
    Artifact,
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Item,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    Report,
    Statement,
    WorkItem,
    part_of,
)
from tests.unit.model.examples import ANA, AT, CONTENT, DIGEST, EDITOR, HANDOFF, LATER, PARENT, an_id
from tests.unit.model.wrongs import NOT_OPTIONAL_DIGESTS, NOT_OPTIONAL_IDS, NOT_OPTIONAL_NUMBERS, NOT_OPTIONAL_TIMES

NOT_OPTIONAL_TEXTS: Final = ("", " \n", "\ud800", b"x", 7)
NOT_LISTS: Final = ("one text", [""], [7], ["\ud800"])
BUDGET: Final = Budget(calls=3, seconds=60, tokens=1000, cost=5)
BRIEF: Final = Brief(
    serves="the second criterion",
    criteria=("tests pass",),
    inputs=("anomalies",),
    expects=("src/invoice.py",),
    stop_when=("a test fails twice",),
    budget=BUDGET,
    verify_by=("pytest", "-q"),
    rationale="the tax office asks for it",
    reasoning=CONTENT,
    role="worker",
    phase="repair",
    instructions=DIGEST,
    config=DIGEST,
    needs_tools=("write_file",),
    needs_skills=("python",),
    may=("write:src/**",),
    none=("exclusion",),
)
WRONG: Final[dict[str, tuple[Any, ...]]] = {
    "serves": NOT_OPTIONAL_TEXTS,
    "criteria": NOT_LISTS,
    "inputs": NOT_LISTS,
    "expects": NOT_LISTS,
    "stop_when": NOT_LISTS,
    "budget": ({"calls": 3}, 3, "3"),
    "verify_by": NOT_LISTS,
    "rationale": NOT_OPTIONAL_TEXTS,
    "reasoning": NOT_OPTIONAL_IDS,
    "role": NOT_OPTIONAL_TEXTS,
    "phase": NOT_OPTIONAL_TEXTS,
    "instructions": NOT_OPTIONAL_DIGESTS,
    "config": NOT_OPTIONAL_DIGESTS,
    "needs_tools": NOT_LISTS,
    "needs_skills": NOT_LISTS,
    "may": NOT_LISTS,
    "none": ("exclusion", ("exclusion", "exclusion"), ("exclusions",), ("Not a code",), [7]),
}
PAGE: Final = Artifact("page", body=CONTENT, sha256=DIGEST, size=5, media_type="text/html", source="web")
VALUES: Final[tuple[ItemValue, ...]] = (
    Statement("Fix it"),
    Constraint("few"),
    Exclusion("no mail"),
    WorkItem("read"),
    OpenQuestion("zero?"),
    RejectedPath("floats"),
    Decision("half-even"),
    Assumption("64 bits"),
    Claim("8 rows"),
    PAGE,
    replace(PAGE, name="foreign", untrusted=True),
    Statement("And soon"),
)
SAID_BY_CHILD: Final = Report(
    result="done",
    completed=(WorkItem("tested"),),
    open_questions=(OpenQuestion("negative?"),),
    rejected_paths=(RejectedPath("cents"),),
    decisions=(Decision("in a loop"),),
    assumptions=(Assumption("sorted"),),
    claims=(Claim("9 rows"),),
)


def an_item(value: ItemValue | None, number: int = 1, part: Part | None = None) -> Item:
    """Return a value as it was recorded."""
    where = part or part_of(value or Statement("gone"))
    return Item(id=ContentId(an_id("content", number)), digest=DIGEST, part=where, by=ANA, at=AT, value=value)


def a_baton(*values: ItemValue | None, **parts: Any) -> Baton:  # noqa: ANN401 - any part of a baton
    """Return a baton with these items."""
    known: dict[str, Any] = {
        "handoff": HANDOFF,
        "root": PARENT,
        "parent": PARENT,
        "sender": AgentId("lead"),
        "principal": ANA,
        "to": EDITOR,
        "relation": Relation.LEAD_TO_WORKER,
        "revision": 0,
        "task": "Make total() round half-even",
        "brief": BRIEF,
        "items": tuple(an_item(value, number) for number, value in enumerate(values, 1)),
    }
    return Baton(**known | parts)


def test_no_field_of_a_brief_goes_unchecked() -> None:
    """The table has every field, and the example says something in each."""
    assert {field.name for field in fields(Brief)} == set(WRONG)
    assert [] == [field.name for field in fields(Brief) if getattr(BRIEF, field.name) == field.default]


@pytest.mark.parametrize("name", WRONG, ids="the {} of a brief".format)
def test_an_invalid_field_is_refused_by_name(name: str) -> None:
    """Whatever is wrong, the field is named; a single text where a list belongs is a mistake."""
    for wrong in WRONG[name]:
        with pytest.raises(InvalidValueError) as refused:
            replace(BRIEF, **{name: wrong})
        assert name == refused.value.field


@pytest.mark.parametrize("name", [field.name for field in fields(Budget)], ids="of {}".format)
def test_a_budget_is_whole_and_not_negative(name: str) -> None:
    """Each limit is a whole number from 0 on, or not given."""
    for wrong in NOT_OPTIONAL_NUMBERS:
        with pytest.raises(InvalidValueError) as refused:
            replace(BUDGET, **{name: wrong})
        assert f"budget.{name}" == refused.value.field

    assert (0, None) == (getattr(replace(BUDGET, **{name: 0}), name), getattr(Budget(), name))


def test_a_brief_says_nothing_by_itself() -> None:
    """Nothing is filled in: an empty brief is empty."""
    assert [] == [field.name for field in fields(Brief) if getattr(Brief(), field.name) not in (None, ())]


def test_an_unknown_part_is_named_with_those_there_are() -> None:
    """Whoever says that there are no `questions` meant `question`, and is told."""
    with pytest.raises(InvalidValueError, match=r"questions is no part of a baton; there are artifact, .*, untrusted"):
        Brief(none=("questions",))


def test_lists_are_kept_as_they_were() -> None:
    """What was said stays, whatever becomes of the list that said it."""
    criteria: Any = ["tests pass"]
    brief = Brief(criteria=criteria, none=["claim"])  # type: ignore[arg-type]
    criteria.append("and more")

    assert (("tests pass",), ("claim",)) == (brief.criteria, brief.none)


VIEWS: Final[dict[str, tuple[ItemValue, ...]]] = {
    "intent": (Statement("Fix it"), Statement("And soon")),
    "constraints": (Constraint("few"),),
    "exclusions": (Exclusion("no mail"),),
    "completed": (WorkItem("read"),),
    "open_questions": (OpenQuestion("zero?"),),
    "rejected_paths": (RejectedPath("floats"),),
    "decisions": (Decision("half-even"),),
    "assumptions": (Assumption("64 bits"),),
    "claims": (Claim("8 rows"),),
    "artifacts": (PAGE,),
    "untrusted": (replace(PAGE, name="foreign", untrusted=True),),
    "reports": (),
}
FROM_REPORT: Final[dict[str, tuple[ItemValue, ...]]] = {
    "completed": (WorkItem("done"), WorkItem("tested")),
    "open_questions": (OpenQuestion("negative?"),),
    "rejected_paths": (RejectedPath("cents"),),
    "decisions": (Decision("in a loop"),),
    "assumptions": (Assumption("sorted"),),
    "claims": (Claim("9 rows"),),
    "reports": (SAID_BY_CHILD,),
}


@pytest.mark.parametrize("name", VIEWS, ids="its {}".format)
def test_a_baton_is_read_by_its_parts(name: str) -> None:
    """Each part has what was recorded there, in that order, and nothing of another part."""
    assert VIEWS[name] == getattr(a_baton(*VALUES), name)


@pytest.mark.parametrize("name", VIEWS, ids="its {}".format)
def test_what_a_report_says_is_read_with_the_rest(name: str) -> None:
    """A report travels whole; what it lists stands behind what was recorded by itself, and is no instruction."""
    assert VIEWS[name] + FROM_REPORT.get(name, ()) == getattr(a_baton(*VALUES, SAID_BY_CHILD), name)


def test_items_of_a_part_are_given_with_their_ids() -> None:
    """An erased item is still there, without words: it can be counted and named."""
    baton = a_baton(Decision("half-even"), None, Claim("8 rows"))

    assert (baton.items[0],) == baton.of(Part.DECISION)
    assert (baton.items[1],) == baton.of(Part.INTENT)
    assert () == baton.intent


@pytest.mark.parametrize("result", ["", " \n"], ids=["nothing", "white space"])
def test_a_report_without_a_result_lists_no_work(result: str) -> None:
    """A report may say nothing about what came of it; reading it is no trouble."""
    report = Report(result=result, claims=(Claim("9 rows"),))

    assert [report, Claim("9 rows")] == list(within(report))
    assert () == a_baton(report).completed


def test_what_was_erased_says_nothing() -> None:
    """There is nothing within words that are gone."""
    assert [] == list(within(None))
    assert [Decision("half-even")] == list(within(Decision("half-even")))


def test_a_baton_cannot_be_changed() -> None:
    """A baton, its brief and its answers are values."""
    answer = Answer(question="zero?", answer="yes", by=ANA, at=LATER)
    baton = a_baton(answers=(answer,), missing=("rationale",), deadline=LATER)

    assert ((answer,), ("rationale",), LATER) == (baton.answers, baton.missing, baton.deadline)
    for value, name in ((baton, "task"), (answer, "answer"), (BRIEF, "may"), (BUDGET, "calls")):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


@pytest.mark.parametrize(
    ("name", "wrongs"),
    [("task", ("", " \n", "\ud800", b"edit", 7, None)), ("deadline", NOT_OPTIONAL_TIMES)],
    ids=["task", "deadline"],
)
def test_a_baton_without_a_task_or_with_no_real_deadline_is_refused(name: str, wrongs: tuple[Any, ...]) -> None:
    """There is nothing to do without a task, and no clock for a deadline without a zone."""
    for wrong in wrongs:
        with pytest.raises(InvalidValueError) as refused:
            a_baton(**{name: wrong})
        assert name == refused.value.field


def test_what_is_inherited_is_what_binds_everybody() -> None:
    """The human's words, constraints and exclusions reach everybody further down; the rest is the sender's to give."""
    assert {Part.INTENT, Part.CONSTRAINT, Part.EXCLUSION} == INHERITED
    assert {"rationale", "criteria", *Part} == PARTS


@pytest.mark.parametrize("relation", Relation, ids="{}".format)
def test_an_empty_baton_misses_all_that_is_expected(relation: Relation) -> None:
    """What nobody said is missing, in the order in which it is expected; and everything expected is a part."""
    assert EXPECTED[relation] == missing_parts(relation, Brief(), ())
    assert set(EXPECTED[relation]) <= PARTS


def test_a_worker_is_told_why_and_when_it_is_done() -> None:
    """What each kind of handoff is expected to say is settled here, word for word."""
    assert {
        Relation.LEAD_TO_WORKER: (
            "rationale",
            "criteria",
            "constraint",
            "exclusion",
            "decision",
            "question",
            "rejected",
        ),
        Relation.WORKER_TO_LEAD: ("completed", "question", "rejected", "assumption"),
        Relation.PEER_TO_PEER: ("completed", "question", "rejected"),
        Relation.EXTERNAL_TO_AGENT: (),
    } == dict(EXPECTED)


@pytest.mark.parametrize("relation", Relation, ids="{}".format)
def test_an_explicit_none_is_not_missing(relation: Relation) -> None:
    """Whoever says that there is none has said it; what is left is still missing."""
    for part in EXPECTED[relation]:
        left = tuple(other for other in EXPECTED[relation] if other != part)
        assert left == missing_parts(relation, Brief(none=(part,)), ())


@pytest.mark.parametrize(
    ("brief", "values", "said"),
    [
        (Brief(rationale="why"), (), {"rationale"}),
        (Brief(criteria=("done",)), (), {"criteria"}),
        (Brief(), (Constraint("few"), Decision("a")), {"constraint", "decision"}),
        (Brief(), (Report(open_questions=(OpenQuestion("?"),), none=("rejected",)),), {"question", "rejected"}),
    ],
    ids=["a rationale", "criteria", "items", "a report"],
)
def test_what_is_said_is_not_missing(brief: Brief, values: tuple[ItemValue, ...], said: set[str]) -> None:
    """The brief, items, and what a report lists or says to be none, all count."""
    items = a_baton(*values).items
    expected = tuple(part for part in EXPECTED[Relation.LEAD_TO_WORKER] if part not in said)

    assert expected == missing_parts(Relation.LEAD_TO_WORKER, brief, items)


def test_an_erased_item_is_not_missing() -> None:
    """It was said, though nobody can read it any more."""
    erased = an_item(None, part=Part.COMPLETED)

    assert ("question", "rejected") == missing_parts(Relation.PEER_TO_PEER, Brief(), (erased,))


def test_every_word_of_a_brief_is_in_the_list_that_is_scanned() -> None:
    """A text that is added to briefs and left out of the list would reach a model unscanned."""
    wordless = {"budget", "reasoning", "instructions", "config", "may", "none"}

    assert {field.name for field in fields(Brief)} - wordless == set(BRIEF_TEXTS)
