"""What comes back from a model: typed if it used the tool, and with its gaps named if it did not."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.briefing.reports import SCHEMA, gaps_of, plain_report, read_report
from batonpass.errors import InvalidValueError
from batonpass.model.baton.items import Assumption, Claim, Decision, OpenQuestion, RejectedPath, Report, WorkItem


def test_a_whole_report_is_read() -> None:
    """Each field of the schema becomes the item that it stands for; shares become thousandths."""
    report = read_report(
        {
            "result": "done",
            "value": {"b": 1, "a": [2]},
            "completed": [{"what": "rounded", "outputs": ["src/invoice.py"]}],
            "open_questions": [{"text": "negative totals?", "blocking": True}, "zero?"],
            "rejected_paths": [{"what": "floats", "why": "they drift"}],
            "decisions": [{"what": "half-even", "why": "law", "conditions": ["2026"]}],
            "assumptions": [{"what": "euros", "confidence": 0.9}],
            "claims": [{"what": "12", "key": "count", "value": "12", "unit": None}],
            "confidence": 0.85,
            "none": ["question"],
        }
    )

    assert (
        Report(
            result="done",
            value='{"a":[2],"b":1}',
            completed=(WorkItem("rounded", outputs=("src/invoice.py",)),),
            open_questions=(OpenQuestion("negative totals?", blocking=True), OpenQuestion("zero?")),
            rejected_paths=(RejectedPath("floats", why="they drift"),),
            decisions=(Decision("half-even", why="law", conditions=("2026",)),),
            assumptions=(Assumption("euros", confidence=900),),
            claims=(Claim("12", key="count", value="12"),),
            confidence=850,
            none=("question",),
        )
        == report
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"result": "x", "verified": True}, "'verified' is not a field of a report; the fields are result,"),
        ({"result": "x", "completed": "all"}, "completed: must be a list, not 'all'"),
        ({"result": "x", "completed": [3]}, "completed.1: must be a text or an object, not 3"),
        ({"result": "x", "completed": [{"what": "a", "verified_by": "me"}]}, "'verified_by' is not a field of it"),
        ({"result": "x", "decisions": [{"why": "because"}]}, "Missing required argument 'what'"),
        ({"result": "x", "confidence": 85}, "must be between 0 and 1, not 85"),
        ({"result": "x", "assumptions": [{"what": "a", "confidence": True}]}, "assumptions.1.confidence"),
        ({"result": 3}, "result"),
        ({"result": "x", "none": 3}, "none: must be a list, not 3"),
        ({"result": "x", "none": ["doubts"]}, "'doubts' is not a part of a report; the parts are intent,"),
    ],
)
def test_a_report_that_is_wrong_is_refused_in_words(arguments: dict[str, object], says: str) -> None:
    """The model is told which field is wrong and what would be right."""
    with pytest.raises(InvalidValueError) as refused:
        read_report(arguments)

    assert says in str(refused.value)


def test_nobody_can_claim_to_be_verified() -> None:
    """The schema has no field for who verified something: that comes only from a recorded verification."""
    assert {"what", "outputs"} == set(SCHEMA["properties"]["completed"]["items"]["properties"])


def test_plain_text_has_gaps() -> None:
    """What a model said without the tool is a result, and the rest of what a lead expects is missing."""
    report = plain_report("All done!")

    assert Report(result="All done!") == report
    assert ("question", "rejected", "assumption") == gaps_of(report)


def test_saying_none_is_no_gap() -> None:
    """A part that is said to be empty is not missing; an empty report says nothing at all."""
    assert ("rejected",) == gaps_of(Report(result="x", none=("question", "assumption")))
    assert ("completed", "question", "rejected", "assumption") == gaps_of(Report())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(SCHEMA["properties"])) | st.text(max_size=5), JSON, max_size=5))
def test_whatever_a_model_sends_is_a_report_or_a_sentence(arguments: dict[str, object]) -> None:
    """Malformed arguments raise nothing but our own error."""
    with suppress(InvalidValueError):
        assert read_report(arguments).part
