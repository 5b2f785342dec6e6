"""Whether this agent can do it here and now."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

from batonpass.guard.baton.capability import (
    find_capability_gaps,
    find_empty_budget,
    find_missing_skills,
    find_missing_tools,
    find_past_deadline,
    find_too_deep,
    find_unaccepted_media_types,
)
from batonpass.guard.baton.problem import Problem, Whom
from batonpass.model.base.ids import AgentId
from batonpass.model.baton.baton import Budget
from batonpass.model.baton.card import Card
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import DAY, LAX, LONG, NOON, a_baton, a_brief, an_artifact, known


def a_card(**parts: Any) -> Card:  # noqa: ANN401
    return Card(agent=AgentId("editor"), **parts)


def found(problems: Iterable[Problem]) -> list[tuple[str, bool]]:
    return [(problem.check, problem.blocking) for problem in problems]


NEEDY = a_baton(an_artifact(), brief=a_brief(needs_tools=("write_file",), needs_skills=("python",)))


def test_an_able_agent_has_no_gap() -> None:
    """A card that has what is needed, a deadline ahead and a budget are enough."""
    able = a_card(tools=("write_file",), skills=("python",), accepts=("text/csv",))

    assert [] == list(find_capability_gaps(NEEDY, known(), LAX, able))


def test_what_is_not_known_of_an_agent_is_not_checked() -> None:
    """No card, or a card that is silent, is no gap."""
    assert [] == [
        *find_capability_gaps(NEEDY, known(), LAX, None),
        *find_capability_gaps(NEEDY, known(), LAX, a_card()),
    ]


def test_every_gap_of_a_card_is_found() -> None:
    """An agent that says it can do nothing lacks everything; the router is asked."""
    problems = list(find_capability_gaps(NEEDY, known(), LAX, a_card(tools=(), skills=(), accepts=())))

    assert [
        ("capability-gap.tool-missing", True),
        ("capability-gap.skill-missing", True),
        ("capability-gap.media-type", True),
    ] == found(problems)
    assert {Whom.ROUTER} == {problem.whom for problem in problems}


def test_a_missing_tool_is_found() -> None:
    """A tool that the card does not list is a gap, and the question is where the task should go."""
    problems = list(find_missing_tools(NEEDY, a_card(tools=("read_file",))))

    assert [
        'Should "Make total() round half-even" go to an agent that has the tool "write_file" instead of "editor"?',
    ] == [problem.question for problem in problems]
    assert [] == list(find_missing_tools(NEEDY, a_card(tools=("read_file", "write_file"))))


def test_a_missing_skill_is_found() -> None:
    """A skill that the card does not list is a gap."""
    assert [("capability-gap.skill-missing", True)] == found(find_missing_skills(NEEDY, a_card(skills=("rust",))))
    assert [] == list(find_missing_skills(NEEDY, a_card(skills=("python",))))


def test_a_media_type_that_is_not_accepted_is_found_once() -> None:
    """Two artifacts of one type that the agent does not accept are one gap."""
    baton = a_baton(an_artifact("a"), an_artifact("b", untrusted=True), an_artifact("c", media_type="text/plain"))
    card = a_card(accepts=("text/plain",))

    assert ['"editor" does not accept "text/csv".'] == [p.about for p in find_unaccepted_media_types(baton, card)]
    assert [] == list(find_unaccepted_media_types(baton, a_card(accepts=("text/plain", "text/csv"))))


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [
        pytest.param(NOON - DAY, [("capability-gap.deadline-past", True)], id="yesterday is past"),
        pytest.param(NOON, [("capability-gap.deadline-past", True)], id="now is too late"),
        pytest.param(NOON + DAY, [], id="tomorrow is in time"),
        pytest.param(None, [], id="without a deadline there is time"),
    ],
)
def test_a_deadline_that_is_over_is_found(deadline: datetime | None, expected: list[tuple[str, bool]]) -> None:
    """Nobody begins what is late already."""
    assert expected == found(find_past_deadline(a_baton(deadline=deadline), known()))


@pytest.mark.parametrize(
    ("budget", "tools", "expected"),
    [
        pytest.param(Budget(seconds=0), (), [True], id="without time nobody goes on"),
        pytest.param(Budget(tokens=0), (), [True], id="without tokens nobody goes on"),
        pytest.param(Budget(calls=0), ("write_file",), [True], id="a task that needs a tool needs a call"),
        pytest.param(Budget(calls=0), (), [False], id="some tasks need no call"),
        pytest.param(Budget(cost=0), (), [False], id="some models cost nothing"),
        pytest.param(Budget(calls=1, seconds=1, tokens=1, cost=1), ("write_file",), [], id="a little is enough"),
        pytest.param(None, (), [], id="without a budget there is no limit"),
    ],
)
def test_an_empty_budget_is_found(budget: Budget | None, tools: tuple[str, ...], expected: list[bool]) -> None:
    """What the task may use nothing of is a gap, and blocks where nobody could do without."""
    baton = a_baton(brief=a_brief(budget=budget, needs_tools=tools))

    assert [("capability-gap.budget-empty", blocking) for blocking in expected] == found(find_empty_budget(baton))


@pytest.mark.parametrize(
    ("depth", "most", "expected"),
    [
        pytest.param(3, 3, [("capability-gap.too-deep", True)], id="as deep as allowed"),
        pytest.param(2, 3, [], id="one hop is left"),
        pytest.param(99, None, [], id="no limit"),
    ],
)
def test_a_lineage_that_is_too_deep_is_found(depth: int, most: int | None, expected: list[tuple[str, bool]]) -> None:
    """The depth is that of the signed lineage."""
    assert expected == found(find_too_deep(a_baton(), known(depth=depth), HandoffPolicy(max_depth=most)))


def test_long_names_are_asked_about_in_25_words() -> None:
    """Neither a task nor a tool of 100,000 characters makes a long question."""
    baton = a_baton(task=LONG, to="a" * 128, brief=a_brief(needs_tools=(LONG,), needs_skills=(LONG,)), deadline=NOON)
    problems = list(find_capability_gaps(baton, known(), LAX, a_card(tools=(), skills=())))

    assert [True] * 3 == [len(problem.question.split()) <= 25 for problem in problems]
