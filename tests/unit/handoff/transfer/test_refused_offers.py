"""Policies at the offer: who may be asked, how deep, in circles or not; a refusal is recorded and nothing runs."""

import pytest

from batonpass import Brief, Handling
from batonpass.errors import (
    AgentNotAllowedError,
    HandoffDepthExceededError,
    HandoffLoopError,
    IncompleteBatonError,
    PolicyRefusedError,
)
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.bodies.body import HandoffFailed, Kind, Relation
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, Places, bodies, receipts


def refusals(relay: Relay) -> list[tuple[str, str | None, int]]:
    """Return to whom, why, and at which attempt handoffs failed."""
    found = [body for body in bodies(relay, Kind.HANDOFF_FAILED) if isinstance(body, HandoffFailed)]
    return [(str(body.to), body.error, body.attempt) for body in found]


def chain(run: LiveRun, *agents: str) -> LiveRun:
    """Return the last of several runs, each handed its task by the one before."""
    for agent in agents:
        run = run.hand_off(agent, f"The part of {agent}").accept()
    return run


def test_three_agents_may_stand_in_a_lineage_of_three(places: Places) -> None:
    """User to support to billing to payment runs; one hop further is refused, recorded, and nothing is offered."""
    relay = places.relay(policy=HandoffPolicy(max_depth=3))
    payment = chain(relay.start("Where is my money?", by=ANA, agent="support"), "billing", "payment")

    with pytest.raises(HandoffDepthExceededError, match="this lineage already has 3 agents, and the policy allows 3"):
        payment.hand_off("bank", "Ask the bank")
    payment.report("it is on its way")
    payment.close()

    assert [("bank", "handoff.too_deep", 0)] == refusals(relay)
    assert 2 == len(bodies(relay, Kind.HANDOFF_INITIATED))


def test_a_refusal_keeps_the_task_and_the_reason(places: Places) -> None:
    """What was wanted, and why not, is content of the receipt."""
    relay = places.relay(policy=HandoffPolicy(allowed_agents=("billing",)))
    lead = relay.start("Where is my money?", by=ANA)
    with pytest.raises(AgentNotAllowedError):
        lead.hand_off("bank", "Ask the bank")

    (receipt,) = receipts(relay, Kind.HANDOFF_FAILED)
    words = [relay.read(receipt.content[name].id).decode() for name in ("task", "message")]
    assert [
        "Ask the bank",
        "the policy allows handoffs to billing, not to bank; choose one of them, or do it yourself",
    ] == words


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        pytest.param(None, False, id="nobody is named, so everybody may be asked"),
        pytest.param((), True, id="an empty list names nobody"),
        pytest.param(("billing-agent",), False, id="whoever is named may be asked"),
        pytest.param(("billing_agent", "billing"), True, id="a name that only looks alike is another"),
    ],
)
def test_agents_are_allowed_by_their_stable_id(
    places: Places, *, allowed: tuple[str, ...] | None, refused: bool
) -> None:
    """The allowlist has ids, and compares them exactly."""
    relay = places.relay(policy=HandoffPolicy(allowed_agents=allowed))
    lead = relay.start("Where is my money?", by=ANA)
    try:
        lead.hand_off("billing-agent", "Look it up")
    except AgentNotAllowedError:
        assert refused
    else:
        assert not refused


def test_who_waits_for_a_task_is_not_asked_for_it_again(places: Places) -> None:
    """A circle is found over the lineage; the same agent with another task is none."""
    relay = places.relay(policy=HandoffPolicy(refuse_loops=True))
    lead = relay.start("Where is my money?", by=ANA)
    first = lead.hand_off("billing", "Look it up").accept()
    second = first.hand_off("bank", "Look it up").accept()
    second.hand_off("billing", "Look up the other one").cancel(reason="enough")

    with pytest.raises(HandoffLoopError):
        second.hand_off("billing", "Look it up")
    assert [("billing", "handoff.loop", 0)] == refusals(relay)


def test_a_policy_of_the_caller_can_only_refuse_more(places: Places) -> None:
    """The relay's own policy is applied whatever the caller brings."""
    relay = places.relay(
        policy=HandoffPolicy(allowed_agents=("billing",), require={Relation.LEAD_TO_WORKER: ("rationale",)})
    )
    lead = relay.start("Where is my money?", by=ANA)
    lenient, strict = HandoffPolicy(), HandoffPolicy(allowed_agents=())

    with pytest.raises(AgentNotAllowedError):
        lead.hand_off("bank", "Ask the bank", brief=Brief(rationale="they know"), handling=Handling(policy=lenient))
    with pytest.raises(IncompleteBatonError):
        lead.hand_off("billing", "Look it up", handling=Handling(policy=lenient))
    with pytest.raises(AgentNotAllowedError, match="allows handoffs to nobody"):
        lead.hand_off("billing", "Look it up", brief=Brief(rationale="they know"), handling=Handling(policy=strict))
    assert ["handoff.not_allowed", "handoff.incomplete", "handoff.not_allowed"] == [
        why for _, why, _ in refusals(relay)
    ]


def test_a_depth_that_the_caller_claims_counts_for_nothing(places: Places) -> None:
    """Starting an own root is the only way to a shorter lineage, and that is a tree of its own, with its own intent."""
    relay = places.relay(policy=HandoffPolicy(max_depth=1))
    lead = relay.start("Where is my money?", by=ANA)

    with pytest.raises(PolicyRefusedError):
        lead.hand_off("billing", "Look it up", brief=Brief(phase="depth 0"))
    assert [("billing", "handoff.too_deep", 0)] == refusals(relay)
