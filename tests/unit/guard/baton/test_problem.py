"""A problem has a stable code and a short question."""

import pytest
from msgspec.structs import replace

from batonpass.errors import InvalidValueError
from batonpass.guard.baton.problem import BY_FREQUENCY
from batonpass.model.base.kinds import ErrorType
from tests.unit.guard.batons import a_problem


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"check": "Not A Code"}, "check", id="a code has no capitals and no spaces"),
        pytest.param({"check": "c" * 65}, "check", id="a code has at most 64 characters"),
        pytest.param({"about": " "}, "about", id="it is about something"),
        pytest.param({"question": "why " * 26}, "question", id="a question has at most 25 words"),
        pytest.param({"error": "data-gap"}, "error", id="its type is one of four"),
        pytest.param({"whom": "somebody"}, "whom", id="one of three is asked"),
    ],
)
def test_a_problem_that_could_not_be_recorded_is_refused(change: dict[str, str], field: str) -> None:
    """Codes are signed and questions are shown, so both are checked where they are made."""
    with pytest.raises(InvalidValueError) as error:
        replace(a_problem(), **change)

    assert field == error.value.field


def test_a_question_of_25_words_is_asked() -> None:
    """The limit itself is allowed."""
    assert 25 == len(a_problem(question="why " * 25).question.split())


def test_every_type_has_its_frequency() -> None:
    """No type of error is left out of the order."""
    assert set(ErrorType) == set(BY_FREQUENCY)
