"""Somebody with an approver's key, and handoffs and calls that wait for them."""

from dataclasses import dataclass

import pytest

from batonpass.errors import CallSuspendedError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId, PrincipalId
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay, recording_of
from batonpass.signing.approver_key import Approver
from batonpass.signing.ed25519 import Ed25519Signer
from batonpass.store.memory import MemoryStore

ANA = PrincipalId("user:ana")
BEN = PrincipalId("user:ben")
PROVEN = Policy(enforce=True, proven=True)


@tool(reversible=False, target="place")
def deploy(place: str) -> str:
    """Pretend to deploy."""
    return f"deployed {place}"


def ship(run: LiveRun) -> str:
    """Deploy to where it counts."""
    return run.call(deploy, "prod")


def an_approver(relay: Relay, principal: PrincipalId = ANA) -> Approver:
    """Return somebody whose key is enrolled."""
    signer = Ed25519Signer.generate()
    recording_of(relay)
    relay.admin.enroll_approver(principal, signer.public_key)
    return Approver(principal, signer)


@dataclass(frozen=True, slots=True)
class Desk:
    """A relay in memory, a lead, and Ana with her key."""

    store: MemoryStore
    relay: Relay
    lead: LiveRun
    ana: Approver

    def held_handoff(self, task: str = "Tell everybody") -> LiveHandoff:
        """Return a handoff that is held at its offer."""
        return self.lead.hand_off("mailer", task, hold=True)

    def held_attempt(self, task: str = "Ship it") -> LiveHandoff:
        """Return a handoff whose first attempt stopped before a call."""
        handoff = self.lead.hand_off("shipper", task, criteria=["it answers"], run=ship)
        handoff.wait()
        return handoff

    def held_call(self, place: str = "prod") -> CallId:
        """Return a call of the root that waits."""
        with pytest.raises(CallSuspendedError) as held:
            self.lead.call(deploy, place)
        return CallId(held.value.call)


def a_desk(policy: Policy = PROVEN) -> Desk:
    """Return a relay in memory under a policy, with a root that is open."""
    store = MemoryStore()
    relay = Relay(store, policy=policy)
    lead = relay.start("Ship the release", by=ANA)
    return Desk(store, relay, lead, an_approver(relay))
