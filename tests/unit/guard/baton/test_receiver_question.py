"""One question, and only when it is needed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batonpass.guard.baton.problem import BY_FREQUENCY, Problem, Settles
from batonpass.guard.baton.receiver_question import Asking, choose_question, find_unsettled
from batonpass.model.base.kinds import ErrorType
from batonpass.model.baton.baton import Answer
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import ANA, LAX, NOON, a_problem
from tests.unit.guard.strategies import policies

ASKS = HandoffPolicy(asks=True)
CORRUPTION, GAP, DRIFT, CAPABILITY = BY_FREQUENCY


def choose(*problems: Problem, **changes: Any) -> Asking:  # noqa: ANN401
    given: dict[str, Any] = {"policy": ASKS, "asked_here": 0, "hops_since_question": None, **changes}
    return choose_question(problems, **given)


def said(question: str, answer: str, *, waives: bool = False) -> Answer:
    """Return an answer of Ana."""
    return Answer(question=question, answer=answer, by=ANA, at=NOON, waives=waives)


def doubtful(question: str = "Which one?") -> Problem:
    """Return a problem that does not block, but about which the receiver asks."""
    return replace(a_problem(question=question, blocking=False), doubtful=True)


def test_nothing_is_asked_without_a_problem_that_blocks_or_is_doubtful() -> None:
    """Everything else is reported, and never asked."""
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
        pytest.param({"hops_since_question": 4}, id="the last question is too few hops ago"),
    ],
)
def test_a_doubtful_question_that_is_kept_back_is_said(changes: dict[str, Any]) -> None:
    """That it would have asked is recorded: going on without asking is a failure mode."""
    assert Asking(would_ask=doubtful()) == choose(doubtful(), **changes)


def test_a_second_question_is_asked_where_the_policy_has_two() -> None:
    """The budget of a handoff is the policy's."""
    assert Asking(question=doubtful()) == choose(doubtful(), policy=replace(ASKS, questions=2), asked_here=1)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"asked_here": 9}, id="nine questions were asked"),
        pytest.param({"policy": replace(ASKS, questions=0)}, id="the policy has no question left"),
        pytest.param({"hops_since_question": 0}, id="the last question was just asked"),
    ],
)
def test_what_blocks_is_asked_whatever_the_budget(changes: dict[str, Any]) -> None:
    """Limits keep back what is doubtful; what blocks must not begin, so it is asked until it is settled."""
    assert Asking(question=a_problem()) == choose(a_problem(), **changes)


def test_what_blocks_is_asked_before_what_is_doubtful() -> None:
    """However many doubts there are."""
    assert Asking(question=a_problem(CAPABILITY)) == choose(doubtful("a"), doubtful("b"), a_problem(CAPABILITY))


NO_ANSWERS = ("dunno", "Don't know.", "TBD", "???", "n/a", "to be decided", "-", "I dont know", "not sure")


@pytest.mark.parametrize(
    ("settles", "answer", "settled"),
    [
        *(pytest.param(Settles.ANSWER, words, False, id=f"{words} says nothing") for words in NO_ANSWERS),
        pytest.param(Settles.ANSWER, "gross", True, id="a choice settles"),
        pytest.param(Settles.ANSWER, "none", True, id="an explicit none settles"),
        pytest.param(Settles.YES, "Yes, until Friday", True, id="yes settles what needs a yes"),
        pytest.param(Settles.YES, "it still holds", True, id="so do other words"),
        pytest.param(Settles.YES, "No.", False, id="no does not"),
        pytest.param(Settles.NO, "no, keep it there", True, id="no settles what needs a no"),
        pytest.param(Settles.NO, "yes", False, id="yes does not"),
        pytest.param(Settles.CHECK, "it is on the way, promised", False, id="words settle no check"),
    ],
)
def test_an_answer_settles_what_it_answers(settles: Settles, answer: str, settled: bool) -> None:  # noqa: FBT001
    """Words that say nothing are on the record, and settle nothing; some problems no words settle."""
    problem = replace(a_problem(question="Net or gross?"), settles=settles)

    assert (not settled) == (choose(problem, answers=(said("Net or gross?", answer),)).question is not None)


def test_a_waiver_settles_everything_it_is_about() -> None:
    """Even what no words settle; another problem stays."""
    problem = replace(a_problem(question="Which file?"), settles=Settles.CHECK)

    assert Asking() == choose(problem, answers=(said("Which file?", "do without it", waives=True),))
    assert Asking(question=problem) == choose(problem, answers=(said("Which other file?", "without", waives=True),))


def test_the_last_answer_counts() -> None:
    """Whoever takes an answer back has not answered."""
    problem = a_problem(question="Net or gross?")

    assert Asking(question=problem) == choose(
        problem, answers=(said("Net or gross?", "gross"), said("Net or gross?", "dunno"))
    )


def test_an_answer_leaves_room_for_what_is_still_open() -> None:
    """With one of two problems answered, the other is the one to ask."""
    answered, still_open = a_problem(CORRUPTION, "Net or gross?"), a_problem(CAPABILITY, "Elsewhere?")

    assert Asking(question=still_open) == choose(answered, still_open, answers=(said("Net or gross?", "gross"),))


@given(
    st.lists(st.builds(a_problem, st.sampled_from(ErrorType), st.sampled_from("abc"), blocking=st.booleans())),
    policies,
    st.integers(0, 3),
    st.none() | st.integers(0, 9),
    st.lists(st.builds(said, st.sampled_from("abc"), st.sampled_from(["yes", "dunno"]))),
)
def test_nothing_that_blocks_is_forgotten(
    problems: list[Problem],
    policy: HandoffPolicy,
    asked: int,
    hops: int | None,
    answers: list[Answer],
) -> None:
    """As long as something blocks, there is a question, or it is said that there would have been one."""
    asking = choose_question(problems, policy=policy, asked_here=asked, hops_since_question=hops, answers=answers)
    blocking = [problem for problem in find_unsettled(problems, answers) if problem.blocking]

    assert bool(blocking) == ((asking.question or asking.would_ask) is not None)
    assert asking.question is None or (policy.asks and asking.question in blocking)
