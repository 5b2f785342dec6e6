"""Errors as JSON, there and back."""

import msgspec
import pytest

from batonpass.api.problems import Problem, error_of, problem_of
from batonpass.errors import BatonpassError, CallInDoubtError, error_classes


@pytest.mark.parity("errors-have-one-json-shape")
@pytest.mark.parametrize("code", sorted(error_classes()))
def test_an_error_crosses_as_itself(code: str) -> None:
    """Every code: the same class, code, sentence and facts at the other end, in the members of RFC 9457."""
    kind = error_classes()[code]
    data = msgspec.json.encode(problem_of(kind("why, and what to do", code=code, facts={"call": "call_1"})))
    error = error_of(msgspec.json.decode(data, type=Problem))

    assert {"type", "title", "detail", "code", "facts"} == msgspec.json.decode(data).keys()
    assert (kind, code, "why, and what to do", {"call": "call_1"}) == (type(error), error.code, str(error), error.facts)


def test_an_error_of_a_later_version_keeps_its_code_and_sentence() -> None:
    """A program that does not know a code can still say it."""
    error = error_of(Problem(type="urn:batonpass:error:later.code", title="Later", detail="newer", code="later.code"))

    assert (BatonpassError, "later.code", "newer") == (type(error), error.code, str(error))


def test_the_title_is_that_of_the_class() -> None:
    """A person who reads many errors sees which are alike."""
    problem = problem_of(CallInDoubtError("send_mail was requested before"))

    assert problem.title == problem_of(CallInDoubtError("another")).title
    assert "urn:batonpass:error:call.in_doubt" == problem.type
