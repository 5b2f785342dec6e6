"""Workers elsewhere: they claim what waits for their agents, and the control plane records what they did."""

from datetime import timedelta
from typing import Any

import pytest

from batonpass.dispatch.worker import Worker
from batonpass.errors import GrantExceededError, LeaseLostError, OutOfReachError
from batonpass.handoff.live.faces import LiveHandoff
from batonpass.model.base.lifecycle import Carrier, State
from tests.unit.client.conftest import Place

WORKER = "service:workers"
MINUTE = timedelta(minutes=1)


def offered(place: Place, **more: Any) -> LiveHandoff:  # noqa: ANN401 - as of `hand_off`
    """Return a handoff that waits for a worker, in the tree of somebody else."""
    lead = place.relay.start("Get it done", by="user:ben")
    return lead.hand_off("editor", "Edit", carrier=Carrier.WORKER, **more)


def test_a_worker_elsewhere_does_the_work_of_its_agents(place: Place) -> None:
    """It claims, works, delivers; its run is of the tree's principal, and the ledger verifies."""
    handoff = offered(place, may=["read:**"])
    relay = place.elsewhere(place.token(WORKER, agents=("editor",)))
    relay.register("editor", lambda run: f"did {run.task} for {run.principal}")
    worker = Worker(relay, name="w1")

    assert (True, False) == (worker.work_one(), worker.work_one())
    assert (State.COMPLETED, "did Edit for user:ben") == (handoff.state(), handoff.result().value)
    place.relay.verify()


def test_what_a_worker_fails_at_has_failed(place: Place) -> None:
    """With its error, as at a relay in this process."""
    handoff = offered(place, may=["read:**"])
    relay = place.elsewhere(place.token(WORKER, agents=("editor",)))

    def fails(_: object) -> None:
        raise RuntimeError("the model is gone")

    relay.register("editor", fails)
    Worker(relay, name="w1").work_one()

    assert State.FAILED is handoff.state()
    assert "the model is gone" in handoff.result().reason


def test_a_lease_is_of_the_token_that_claimed(place: Place) -> None:
    """Nobody else renews it, gives it back, or takes the handoff under it, though they work as the same agent."""
    handoff = offered(place, may=["read:**"])
    mine, theirs = (place.elsewhere(place.token(name, agents=("editor",))) for name in (WORKER, "service:others"))
    lease = mine.claim(holder="w1", lease_for=MINUTE, agents=["editor"])
    assert lease is not None

    for act in (
        lambda: theirs.heartbeat(lease, MINUTE),
        lambda: theirs.release(lease),
        lambda: theirs.handoff(lease).accept(lease=lease),
    ):
        with pytest.raises(LeaseLostError):
            act()
    renewed = mine.heartbeat(lease, MINUTE)
    mine.release(renewed)
    assert (State.READY, handoff.id) == (handoff.state(), lease.handoff)


def test_a_token_claims_for_the_agents_that_it_names(place: Place) -> None:
    """And for no other, not even if it names none."""
    offered(place, may=["read:**"])

    for agents in ((), ("reviewer",)):
        relay = place.elsewhere(place.token(WORKER, agents=agents))
        with pytest.raises(OutOfReachError):
            relay.claim(holder="w1", lease_for=MINUTE, agents=["editor"])


def test_a_handoff_beyond_the_ceiling_is_not_claimed(place: Place) -> None:
    """It goes on waiting, for somebody who may."""
    handoff = offered(place, may=["deploy:prod"])
    relay = place.elsewhere(place.token(WORKER, agents=("editor",)))

    with pytest.raises(GrantExceededError, match="deploy:prod"):
        relay.claim(holder="w1", lease_for=MINUTE, agents=["editor"])
    assert State.READY is handoff.state()
