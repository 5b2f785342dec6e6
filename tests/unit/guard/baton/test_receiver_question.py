"""One question, and only when it is needed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batonpass.guard.baton.problem import BY_FREQUENCY, Problem
from batonpass.guard.baton.receiver_question import Asking, choose_question, may_ask
from batonpass.model.base.kinds import ErrorType
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import LAX, a_problem
from tests.unit.guard.strategies import policies

ASKS = HandoffPolicy(asks=True)
CORRUPTION, GAP, DRIFT, CAPABILITY = BY_FREQUENCY


def choose(*problems: Problem, **changes: Any) -> Asking:  # noqa: ANN401
    given: dict[str, Any] = {"policy": ASKS, "asked_here": 0, "hops_since_question": None, "answered": {}, **changes}
    return choose_question(problems, **given)


def test_nothing_is_asked_without_a_problem_that_blocks() -> None:
    """What does not block is reported, and never asked."""
    assert Asking() == choose() == choose(a_problem(blocking=False))


def test_the_dominant_type_is_asked_about() -> None:
    """The first problem of the type that most of the blocking ones have is asked."""
    first, second = a_problem(DRIFT, "Which?"), a_problem(DRIFT, "What?")
    many = [a_problem(GAP, blocking=False)] * 5

    assert Asking(question=first) == choose(a_problem(CORRUPTION), first, second, *many)


@pytest.mark.parametrize(
    ("types", "asked"),
    [
        pytest.param([CAPABILITY, DRIFT, GAP, CORRUPTION], CORRUPTION, id="corruption before everything"),
        pytest.param([CAPABILITY, DRIFT, GAP], GAP, id="a gap before drift"),
        pytest.param([CAPABILITY, DRIFT], DRIFT, id="drift before a missing capability"),
    ],
)
def test_of_equally_many_the_more_common_is_asked_about(types: list[ErrorType], asked: ErrorType) -> None:
    """A tie is decided by how common a type is in general."""
    chosen = choose(*map(a_problem, types)).question

    assert (asked, True) == (chosen and chosen.error, chosen is not None)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"policy": LAX}, id="the policy does not ask"),
        pytest.param({"asked_here": 1}, id="the one question of this handoff was asked"),
        pytest.param({"policy": replace(ASKS, questions=0)}, id="there is no question to begin with"),
    ],
)
def test_a_question_that_is_kept_back_is_said(changes: dict[str, Any]) -> None:
    """That it would have asked is recorded: going on without asking is a failure mode."""
    assert Asking(would_ask=a_problem()) == choose(a_problem(), **changes)


def test_a_second_question_is_asked_where_the_policy_has_two() -> None:
    """The budget of a handoff is the policy's."""
    assert Asking(question=a_problem()) == choose(a_problem(), policy=replace(ASKS, questions=2), asked_here=1)


def test_what_blocks_does_not_wait_for_hops() -> None:
    """The distance between questions is waived for a problem that blocks, and for no other."""
    common = {"policy": ASKS, "asked_here": 0}
    light = a_problem(blocking=False)

    assert Asking(question=a_problem()) == choose(a_problem(), hops_since_question=0)
    assert [False, True, True] == [
        may_ask(light, **common, hops_since_question=hops)  # type: ignore[arg-type]
        for hops in (4, 5, None)
    ]


def test_an_answered_question_is_not_asked_again() -> None:
    """The answer is remembered by the words of the question, and returned."""
    assert Asking(cached="gross", settled=a_problem(question="Net or gross?")) == choose(
        a_problem(question="Net or gross?"),
        answered={"Net or gross?": "gross"},
    )


def test_an_answer_leaves_room_for_what_is_still_open() -> None:
    """With one of two problems answered, the other is the one to ask."""
    answered, still_open = a_problem(CORRUPTION, "Net or gross?"), a_problem(CAPABILITY, "Elsewhere?")

    assert Asking(question=still_open) == choose(answered, still_open, answered={"Net or gross?": "gross"})


@given(
    st.lists(st.builds(a_problem, st.sampled_from(ErrorType), st.sampled_from("abc"), blocking=st.booleans())),
    policies,
    st.integers(0, 3),
    st.none() | st.integers(0, 9),
    st.dictionaries(st.sampled_from("abc"), st.just("yes")),
)
def test_at_most_one_thing_is_to_be_done(
    problems: list[Problem],
    policy: HandoffPolicy,
    asked: int,
    hops: int | None,
    answered: dict[str, str],
) -> None:
    """There is one outcome if something blocks and none otherwise, and the budget of the handoff always holds."""
    asking = choose_question(
        problems,
        policy=policy,
        asked_here=asked,
        hops_since_question=hops,
        answered=answered,
    )
    outcomes = [asking.question, asking.would_ask, asking.cached]

    assert any(problem.blocking for problem in problems) == 3 - outcomes.count(None)
    assert asking.question is None or (policy.asks and asked < policy.questions)
    assert asking.question is None or (asking.question.blocking and asking.question.question not in answered)
