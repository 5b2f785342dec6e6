"""Work for workers to an agent that nobody knows: a warning with names that are alike, or an error."""

import warnings

import pytest

from batonpass.errors import UnknownAgentError
from batonpass.errors.handoff import UnknownAgentWarning
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.card import Card
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, LONG, Places, bodies


def hand_off(relay: Relay, to: str, task: str = "one") -> State:
    return relay.start("Translate it", by=ANA).hand_off(to, task, carrier=Carrier.WORKER).state()


def test_an_unknown_agent_is_warned_about_once_with_names_that_are_alike(relay: Relay) -> None:
    """The handoff is offered all the same: a worker may come that knows the agent."""
    relay.register("translator", lambda run: run.task)
    relay.introduce(Card(agent="transcriber"))  # type: ignore[arg-type]
    with pytest.warns(UnknownAgentWarning, match="did you mean translator or transcriber"):
        assert State.READY is hand_off(relay, "translater")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hand_off(relay, "translater", "two")
        hand_off(relay, "translator")
        hand_off(relay, "transcriber")


def test_a_warning_points_at_the_line_of_the_user(relay: Relay) -> None:
    """Whoever reads it sees their own line, however many of ours are in between."""
    with pytest.warns(UnknownAgentWarning) as warned:
        hand_off(relay, "translater")

    assert [__file__] == [warning.filename for warning in warned]


def test_whoever_ran_here_is_known(places: Places) -> None:
    """A process that only hands off knows the agents that workers of other processes run."""
    relay, other = places.relay(), places.relay()
    with pytest.warns(UnknownAgentWarning):
        hand_off(relay, "translator")
    lease = relay.claim(holder="worker", lease_for=LONG)
    assert lease is not None
    relay.handoff(lease).accept(lease=lease).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hand_off(other, "translator")


def test_a_policy_refuses_agents_that_nobody_knows(places: Places) -> None:
    """With `known_agents` nothing waits for an agent that never comes; the refusal is recorded."""
    relay = places.relay(policy=HandoffPolicy(known_agents=True))
    relay.register("translator", lambda run: run.task)
    with pytest.raises(UnknownAgentError, match="did you mean translator"):
        hand_off(relay, "translater")

    assert [("handoff.unknown_agent", "translater")] == [
        (body.error, body.to) for body in bodies(relay, "handoff.failed")
    ]
    assert State.READY is hand_off(relay, "translator")
    assert State.OFFERED is relay.start("Translate it", by=ANA).hand_off("anybody", "here").state()
