"""Everything that is wrong with a baton is found, in order, and nothing else happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batonpass.guard.baton.known_facts import KnownFacts
from batonpass.guard.baton.problem import BY_FREQUENCY, LONGEST_QUESTION
from batonpass.guard.baton.referential_drift import find_open_references
from batonpass.guard.baton.validation import validate_baton
from batonpass.model.base.ids import AgentId
from batonpass.model.baton.baton import Baton, Brief
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import Claim, OpenQuestion
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.guard.batons import LAX, NOON, a_baton, an_artifact, kept, known
from tests.unit.guard.strategies import batons, cards, knowledge, policies


def test_a_sound_baton_passes() -> None:
    """The ordinary handoff has no problem."""
    assert () == validate_baton(a_baton(an_artifact()), known=known(kept()), policy=LAX)


def test_what_blocks_comes_first_and_then_what_is_common() -> None:
    """The order is: blocking, corruption, gap, drift, capability."""
    baton = a_baton(
        Claim("a", key="rate", value="1"),
        Claim("b", key="rate", value="2"),
        OpenQuestion("Net or gross?", blocking=True),
        task="Like run:7f3b",
        brief=Brief(needs_tools=("write_file",), rationale="see run:7f3c"),
        deadline=NOON,
    )
    card = Card(agent=AgentId("editor"), tools=())
    problems = validate_baton(baton, known=known(), policy=LAX, card=card)

    assert [
        ("signal-corruption.two-values", True),
        ("data-gap.question-open", True),
        ("referential-drift.unresolved", True),
        ("capability-gap.tool-missing", True),
        ("capability-gap.deadline-past", True),
        ("data-gap.criteria-missing", False),
        ("referential-drift.unresolved", False),
    ] == [(problem.check, problem.blocking) for problem in problems]


@given(batons, knowledge, policies, st.none() | cards)
@pytest.mark.slow
def test_any_baton_is_validated(baton: Baton, knows: KnownFacts, policy: HandoffPolicy, card: Card | None) -> None:
    """No baton makes validation fail; every question is short, and the order holds."""
    problems = validate_baton(baton, known=knows, policy=policy, card=card)
    order = [(not problem.blocking, BY_FREQUENCY.index(problem.error)) for problem in problems]

    assert sorted(order) == order
    assert all(problem.check.startswith(f"{problem.error}.") for problem in problems)
    assert all(len(problem.question.split()) <= LONGEST_QUESTION for problem in problems)
    assert all(problem.question.endswith("?") and problem.question.count("\n") == 0 for problem in problems)
    assert problems == validate_baton(baton, known=knows, policy=policy, card=card)


@given(batons)
def test_what_the_ledger_resolves_is_no_drift(baton: Baton) -> None:
    """Whoever looks up every open reference and finds it has no unresolved one."""
    knows = known(resolves=frozenset(find_open_references(baton)))
    checks = {problem.check for problem in validate_baton(baton, known=knows, policy=LAX)}

    assert "referential-drift.unresolved" not in checks
