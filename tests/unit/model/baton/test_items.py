"""Items: each says one thing, refuses what cannot be right by its field's name, and fills nothing in."""

from datetime import datetime
from typing import Any, Final

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.checks import LONGEST_TEXT
from batonpass.model.base.ids import Digest
from batonpass.model.base.kinds import Part
from batonpass.model.base.label import SourceType
from batonpass.model.baton.items import (
    SURE,
    VALUE_TYPES,
    Artifact,
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Item,
    ItemValue,
    OpenQuestion,
    Operator,
    RejectedPath,
    Report,
    Statement,
    WorkItem,
    part_of,
    parts_of,
)
from tests.unit.model.examples import ANA, AT, CONTENT, DIGEST
from tests.unit.model.wrongs import (
    NOT_DIGESTS,
    NOT_FLAGS,
    NOT_IDS,
    NOT_MEMBERS,
    NOT_NUMBERS,
    NOT_OPTIONAL_TIMES,
    NOT_PRINCIPALS,
    NOT_TIMES,
)

NOT_TEXTS: Final = ("", " \n\t", "half \ud800", b"bytes", 7, None)
NOT_OPTIONAL_TEXTS: Final = NOT_TEXTS[:-1]
NOT_WORDS: Final = ("half \ud800", b"bytes", 7, None)  # where nothing at all may be said
NOT_LISTS: Final = ("one text", ["", "b"], [7], ("\ud800",))
NOT_SURE: Final = (-1, SURE + 1, 0.5, 1.0, float("nan"), float("inf"), -0.1, True, "900")

# One item of each kind that says all it can.
ITEMS: Final[tuple[ItemValue, ...]] = (
    Statement("Fix invoice rounding"),
    Constraint("few", key="threshold", operator="<=", value="3", unit="sigma", binds_to="call:find.threshold"),
    Exclusion("no new dependencies"),
    WorkItem("total() rounds", outputs=("src/invoice.py",), verified_by="user:ana", how="pytest", evidence="handoff"),
    OpenQuestion("negative totals?", blocking=True),
    RejectedPath("floats", why="tax office"),
    Decision("round half-even", why="tax office", conditions=("EU law",)),
    Assumption("totals fit 64 bits", confidence=900),
    Claim("8 anomalies", key="anomalies", value="8", unit="rows", confidence=700, as_of=AT),
    Artifact(
        "page",
        body=CONTENT,
        sha256=DIGEST,
        size=5,
        media_type="text/html",
        source="web",
        untrusted=True,
        label=SourceType.EXTERNAL,
    ),
    Report(
        result="done",
        value='{"rows":8}',
        completed=(WorkItem("tested"),),
        open_questions=(OpenQuestion("negative?"),),
        rejected_paths=(RejectedPath("floats"),),
        decisions=(Decision("half-even"),),
        assumptions=(Assumption("64 bits"),),
        claims=(Claim("8 rows"),),
        confidence=800,
        none=("constraint",),
    ),
)
BY_TYPE: Final = {type(value): value for value in ITEMS}

WRONG: Final[dict[type, dict[str, tuple[Any, ...]]]] = {
    Statement: {"text": NOT_TEXTS},
    Constraint: {
        "text": NOT_WORDS,
        "key": NOT_OPTIONAL_TEXTS,
        "operator": ("", "=<", "==", "LESS", 7, ["<="]),
        "value": (*NOT_OPTIONAL_TEXTS, 3),
        "unit": NOT_OPTIONAL_TEXTS,
        "binds_to": (*NOT_OPTIONAL_TEXTS, "find.threshold", "tool:find.threshold", "Call:find"),
    },
    Exclusion: {"text": NOT_TEXTS},
    WorkItem: {
        "what": NOT_TEXTS,
        "outputs": NOT_LISTS,
        "verified_by": NOT_OPTIONAL_TEXTS,
        "how": (*NOT_OPTIONAL_TEXTS, None),
        "evidence": NOT_OPTIONAL_TEXTS,
    },
    OpenQuestion: {"text": NOT_TEXTS, "blocking": NOT_FLAGS},
    RejectedPath: {"what": NOT_TEXTS, "why": NOT_WORDS},
    Decision: {"what": NOT_TEXTS, "why": NOT_WORDS, "conditions": NOT_LISTS},
    Assumption: {"what": NOT_TEXTS, "confidence": NOT_SURE},
    Claim: {
        "what": NOT_TEXTS,
        "key": NOT_OPTIONAL_TEXTS,
        "value": (*NOT_OPTIONAL_TEXTS, 8),
        "unit": NOT_OPTIONAL_TEXTS,
        "confidence": NOT_SURE,
        "as_of": NOT_OPTIONAL_TIMES,
    },
    Artifact: {
        "name": NOT_TEXTS,
        "body": NOT_IDS,
        "sha256": NOT_DIGESTS,
        "size": NOT_NUMBERS,
        "media_type": ("", "text", "text/html; a", 7, None),
        "source": NOT_TEXTS,
        "untrusted": NOT_FLAGS,
        "label": NOT_MEMBERS[:-1],
    },
    Report: {
        "result": NOT_WORDS,
        "value": NOT_OPTIONAL_TEXTS,
        **{
            name: ("tested", [7], [Statement("x")], 7, None)
            for name in ("completed", "open_questions", "rejected_paths", "decisions", "assumptions", "claims")
        },
        "confidence": NOT_SURE,
        "none": ("constraint", ("a", "a"), ("Not a code",), [7]),
    },
}


def test_there_is_an_example_and_a_row_of_every_kind() -> None:
    """A new kind of item needs both."""
    assert set(VALUE_TYPES) == set(BY_TYPE) == set(WRONG)


@pytest.mark.parametrize("kind", VALUE_TYPES, ids=lambda kind: f"every field of {kind.__name__}")
def test_no_field_goes_unchecked(kind: type[Any]) -> None:
    """The table has wrong values for every field, and the example says something in every one that has a default."""
    example = BY_TYPE[kind]

    assert {field.name for field in fields(kind)} == set(WRONG[kind])
    assert [] == [field.name for field in fields(kind) if getattr(example, field.name) == field.default]


@pytest.mark.parametrize("kind", VALUE_TYPES, ids=lambda kind: f"every wrong field of {kind.__name__}")
def test_an_invalid_field_is_refused_by_name(kind: type[Any]) -> None:
    """The error is ours and names the field, whatever was given."""
    named = [(name, wrong, refused(kind, name, wrong)) for name, wrongs in WRONG[kind].items() for wrong in wrongs]

    assert [] == [row for row in named if row[0] != row[2]]


def refused(kind: type[Any], name: str, wrong: object) -> str:
    """Return which field is named when an item is made with something wrong in one."""
    try:
        replace(BY_TYPE[kind], **{name: wrong})
    except InvalidValueError as error:
        return error.field
    except Exception as error:  # noqa: BLE001 - shown by the assertion
        return f"{type(error).__name__}: {error}"
    return "accepted"


@pytest.mark.parametrize("value", ITEMS, ids=lambda value: f"{type(value).__name__}, frozen")
def test_an_item_cannot_be_changed(value: Any) -> None:  # noqa: ANN401
    """What was recorded stays as it is, and is compared by what it says."""
    for field in fields(value):
        with pytest.raises(AttributeError):
            setattr(value, field.name, None)

    assert value == replace(value)
    assert hash(value) == hash(replace(value))


@pytest.mark.parametrize("kind", VALUE_TYPES, ids=lambda kind: f"a bare {kind.__name__}")
def test_nothing_is_filled_in(kind: type[Any]) -> None:
    """Of an item that says only what it must, every other field is empty: nobody is taken to have said it."""
    example = BY_TYPE[kind]
    needed = {
        field.name: getattr(example, field.name)
        for field in fields(kind)
        if field.default is NODEFAULT or (kind is Constraint and field.name == "text")
    }
    bare = kind(**needed)
    unsaid = [getattr(bare, field.name) for field in fields(kind) if field.name not in needed]

    assert [] == [value for value in unsaid if value not in (None, "", (), False)]


@pytest.mark.parametrize("operator", Operator, ids="compares by {}".format)
def test_a_typed_constraint_compares_by_any_operator(operator: Operator) -> None:
    """Every operator may stand in a typed constraint, as a member or as its text."""
    made = [Constraint(key="k", operator=given, value="1") for given in (operator, str(operator))]

    assert [f"k {operator} 1"] * 2 == [constraint.sentence for constraint in made]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"key": "k"},
        {"key": "k", "operator": "<"},
        {"operator": "<", "value": "1"},
        {"key": "k", "value": "1"},
        {"text": "prose", "key": "k"},
        {"text": "prose", "operator": "<", "value": "1"},
    ],
    ids=str,
)
def test_half_a_typed_constraint_is_refused(given: dict[str, str]) -> None:
    """A constraint is prose, or typed with all three parts, or both; anything between could not be checked."""
    with pytest.raises(InvalidValueError, match="needs a text, or a key, an operator and a value") as refused:
        Constraint(**given)

    assert "constraint" == refused.value.field


@pytest.mark.parametrize(
    ("constraint", "sentence"),
    [
        (Constraint("be brief"), "be brief"),
        (Constraint(key="n", operator="<=", value="3"), "n <= 3"),
        (Constraint(key="n", operator="<=", value="3", unit="sigma"), "n <= 3 sigma"),
        (Constraint("few", key="n", operator="in", value="1,2"), "few (n in 1,2)"),
    ],
    ids=["prose", "typed", "with a unit", "both"],
)
def test_a_constraint_reads_as_a_sentence(constraint: Constraint, sentence: str) -> None:
    """People see one sentence, however it was written."""
    assert sentence == constraint.sentence


@pytest.mark.parametrize("binds_to", ["call:find.threshold", "result:rows"], ids="bound to {}".format)
def test_a_constraint_binds_to_a_call_or_a_result(binds_to: str) -> None:
    """These are the two places where a constraint is checked."""
    assert binds_to == Constraint("few", binds_to=binds_to).binds_to


def test_verified_work_says_how() -> None:
    """Work is verified if somebody is named; then the way must be named as well."""
    assert [False, False, True] == [
        WorkItem("a").verified,
        WorkItem("a", how="by eye").verified,
        WorkItem("a", verified_by="user:ana", how="pytest").verified,
    ]
    with pytest.raises(InvalidValueError, match="says how") as refused:
        WorkItem("a", verified_by="user:ana")
    assert "how" == refused.value.field


@pytest.mark.parametrize("given", [{"key": "k"}, {"value": "v"}], ids=["a key alone", "a value alone"])
def test_half_a_comparable_claim_is_refused(given: dict[str, str]) -> None:
    """A claim that others are compared with has a key and a value."""
    with pytest.raises(InvalidValueError, match="come together") as refused:
        Claim("8 rows", **given)  # type: ignore[arg-type]

    assert "claim" == refused.value.field


def test_confidence_is_in_thousandths() -> None:
    """From none to certain, in whole thousandths; whoever writes a fraction is told the number to write."""
    assert [0, SURE] == [Assumption("a", confidence=sure).confidence for sure in (0, SURE)]
    with pytest.raises(InvalidValueError, match=r"write 900 for 90%"):
        Assumption("a", confidence=0.9)  # type: ignore[arg-type]


def test_a_list_may_be_any_sequence_and_is_kept_as_it_was() -> None:
    """A list given today does not change what was said when it changes tomorrow."""
    outputs = ["a", "b"]
    work = WorkItem("w", outputs=outputs)  # type: ignore[arg-type]
    outputs.append("c")

    assert ("a", "b") == work.outputs


def test_the_longest_text_is_an_artifact() -> None:
    """A text of ten million characters is taken; one more is not, and the error says what to do."""
    assert LONGEST_TEXT == len(Statement("x" * LONGEST_TEXT).text)
    with pytest.raises(InvalidValueError, match="attach it as an artifact") as refused:
        Statement("x" * (LONGEST_TEXT + 1))
    assert len(str(refused.value)) < 200


def test_a_report_takes_texts_for_items() -> None:
    """The shortest way to say one is its text alone; it becomes an item of the kind that its place asks for."""
    report = Report(
        completed=["tested"],  # type: ignore[arg-type]
        open_questions=("negative?", OpenQuestion("zero?", blocking=True)),  # type: ignore[arg-type]
        claims=["8 rows"],  # type: ignore[arg-type]
        none=["rejected"],  # type: ignore[arg-type]
    )

    assert (WorkItem("tested"),) == report.completed
    assert (OpenQuestion("negative?"), OpenQuestion("zero?", blocking=True)) == report.open_questions
    assert ((Claim("8 rows"),), ("rejected",)) == (report.claims, report.none)


PARTS: Final = {
    Statement: Part.INTENT,
    Constraint: Part.CONSTRAINT,
    Exclusion: Part.EXCLUSION,
    WorkItem: Part.COMPLETED,
    OpenQuestion: Part.QUESTION,
    RejectedPath: Part.REJECTED,
    Decision: Part.DECISION,
    Assumption: Part.ASSUMPTION,
    Claim: Part.CLAIM,
    Artifact: Part.UNTRUSTED,
    Report: Part.COMPLETED,
}


@pytest.mark.parametrize("value", ITEMS, ids=lambda value: f"where a {type(value).__name__} stands")
def test_every_item_has_its_part(value: ItemValue) -> None:
    """Ours and what came from outside never share a part."""
    assert PARTS[type(value)] == part_of(value)
    if not isinstance(value, Report):
        assert {part_of(value)} == parts_of(value)


def test_an_artifact_of_ours_is_not_among_the_untrusted() -> None:
    """Only what came from outside is untrusted."""
    ours = replace(BY_TYPE[Artifact], untrusted=False)

    assert (Part.ARTIFACT, frozenset({Part.ARTIFACT})) == (part_of(ours), parts_of(ours))


@pytest.mark.parametrize(
    ("report", "parts"),
    [
        (Report(), {Part.COMPLETED}),
        (Report(open_questions=(OpenQuestion("?"),)), {Part.COMPLETED, Part.QUESTION}),
        (Report(none=("question", "rejected", "odd")), {Part.COMPLETED, Part.QUESTION, Part.REJECTED}),
        (
            BY_TYPE[Report],
            set(Part) - {Part.INTENT, Part.EXCLUSION, Part.ARTIFACT, Part.UNTRUSTED},
        ),
    ],
    ids=["an empty one", "with a question", "with nones", "with everything"],
)
def test_a_report_says_something_about_many_parts(report: Report, parts: set[Part]) -> None:
    """What a report lists, and what it says there is none of, is not missing."""
    assert parts == parts_of(report)


AN_ITEM: Final = Item(id=CONTENT, digest=DIGEST, part=Part.DECISION, by=ANA, at=AT, value=Decision("half-even"))


@pytest.mark.parametrize(
    ("name", "wrongs"),
    [
        ("id", NOT_IDS),
        ("digest", NOT_DIGESTS),
        ("part", NOT_MEMBERS),
        ("by", NOT_PRINCIPALS),
        ("at", NOT_TIMES),
        ("value", ("half-even", 7, AN_ITEM, {})),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_recorded_item_is_checked_too(name: str, wrongs: tuple[object, ...]) -> None:
    """Whatever is wrong with who, when, where or what, the field is named."""
    for wrong in wrongs:
        with pytest.raises(InvalidValueError) as refused:
            replace(AN_ITEM, **{name: wrong})
        assert name == refused.value.field


def test_an_erased_item_keeps_its_place() -> None:
    """Without its words an item still says which one it was."""
    erased = replace(AN_ITEM, value=None)

    assert (CONTENT, Digest(DIGEST), None) == (erased.id, erased.digest, erased.value)
    assert isinstance(erased.at, datetime)
