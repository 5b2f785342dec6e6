"""A policy: what a handoff must say, and when its receiver asks."""

from datetime import timedelta
from typing import Any, Final

import pytest
from msgspec.structs import fields, replace

from batonpass.errors import InvalidValueError
from batonpass.model.base.kinds import Part, Relation
from batonpass.model.baton.baton import PARTS
from batonpass.model.policy.handoff_policy import HandoffPolicy
from tests.unit.model.wrongs import NOT_COUNTS, NOT_FLAGS, NOT_NUMBERS

POLICY: Final = HandoffPolicy(
    require={Relation.LEAD_TO_WORKER: ("rationale", Part.DECISION)},
    verified_only=True,
    asks=True,
    questions=2,
    hops_between_questions=0,
    oldest=timedelta(days=1),
    max_depth=4,
    max_attempts=3,
    known_agents=True,
    allowed_agents=("editor", "billing-agent"),
    refuse_loops=True,
    sanitize_context=False,
    trust_degradation=False,
)
WRONG: Final[dict[str, tuple[Any, ...]]] = {
    "require": (
        [],
        None,
        "rationale",
        {"lead": ("rationale",)},
        {None: ("rationale",)},
        {Relation.PEER_TO_PEER: ("rational",)},
        {Relation.PEER_TO_PEER: "rationale"},
        {Relation.PEER_TO_PEER: ("",)},
        {Relation.PEER_TO_PEER: (7,)},
    ),
    "verified_only": NOT_FLAGS,
    "asks": NOT_FLAGS,
    "questions": NOT_NUMBERS,
    "hops_between_questions": NOT_NUMBERS,
    "oldest": (60, 60.0, "1 day"),
    "max_depth": NOT_COUNTS[:-1],
    "max_attempts": NOT_COUNTS[:-1],
    "known_agents": NOT_FLAGS,
    "allowed_agents": ("editor", ("",), ("two words",), (7,)),
    "refuse_loops": NOT_FLAGS,
    "sanitize_context": NOT_FLAGS,
    "trust_degradation": NOT_FLAGS,
}


def test_no_field_goes_unchecked() -> None:
    """The table has every field."""
    assert {field.name for field in fields(HandoffPolicy)} == set(WRONG)


@pytest.mark.parametrize("name", WRONG, ids="the {} of a policy".format)
def test_an_invalid_field_is_refused_by_name(name: str) -> None:
    """A policy that could not mean what it says is never applied."""
    for wrong in WRONG[name]:
        with pytest.raises(InvalidValueError) as refused:
            replace(POLICY, **{name: wrong})
        assert name == refused.value.field


def test_without_a_policy_nothing_is_refused() -> None:
    """By default everything is reported, nobody is asked and nothing is required."""
    policy = HandoffPolicy()

    assert ({}, False, False) == (dict(policy.require), policy.verified_only, policy.asks)
    assert (1, 5, None, None, 5) == (
        policy.questions,
        policy.hops_between_questions,
        policy.oldest,
        policy.max_depth,
        policy.attempts,
    )


@pytest.mark.parametrize("relation", Relation, ids="of {}".format)
def test_every_part_can_be_required(relation: Relation) -> None:
    """Any part may be required of any kind of handoff, which may be written as its text."""
    wanted: Any = {str(relation): sorted(PARTS)}

    assert {relation: tuple(sorted(PARTS))} == dict(HandoffPolicy(require=wanted).require)


def test_an_unknown_part_is_named_with_those_there_are() -> None:
    """A typing error in a policy does not silently require nothing."""
    with pytest.raises(InvalidValueError, match="rational is no part of a baton; there are artifact, assumption"):
        HandoffPolicy(require={Relation.PEER_TO_PEER: ("rational",)})


def test_an_unknown_relation_is_named_with_those_there_are() -> None:
    """The same holds for who hands off to whom."""
    wrong: Any = {"boss-to-worker": ("rationale",)}
    with pytest.raises(InvalidValueError, match="'boss-to-worker' is not one of lead-to-worker, worker-to-lead"):
        HandoffPolicy(require=wrong)


def test_a_policy_does_not_change_under_whoever_applies_it() -> None:
    """What is required was settled when the policy was made."""
    wanted: dict[Relation, tuple[str, ...]] = {Relation.PEER_TO_PEER: ("completed",)}
    policy = HandoffPolicy(require=wanted)
    wanted.clear()

    assert {Relation.PEER_TO_PEER: ("completed",)} == dict(policy.require)
    with pytest.raises(TypeError):
        policy.require[Relation.PEER_TO_PEER] = ()  # type: ignore[index]
    with pytest.raises(AttributeError):
        policy.asks = True  # type: ignore[misc]
    assert POLICY == replace(POLICY)
