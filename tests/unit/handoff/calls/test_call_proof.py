"""Proofs for tool servers: by a run that works now, on any relay, and by nobody else."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from batonpass import Grant
from batonpass.errors import (
    FencedError,
    GrantDeniedError,
    GrantExpiredError,
    GrantRevokedError,
    KeyMissingError,
    LeaseLostError,
    NotFoundError,
    StreamClosedError,
)
from batonpass.grants.verifier import Verifier
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import AgentId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.card import Card
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.call import Call
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from tests.unit.handoff.places import ANA, LONG, Places, receipts, worker

CALL = Call("write_file", "write", "src/a.py", {"text": "x"})
DISK = "disk"


def a_lead(relay: Relay) -> LiveRun:
    """Return a run that may write, and let others."""
    return relay.start("Fix it", by=ANA, grant=Grant(may=["write:src/**"], may_delegate=["write:src/**"]))


def a_server(relay: Relay) -> Verifier:
    """Return somebody who knows the root key of a ledger."""
    with relay.store.view() as view:
        return Verifier(view.info().root_key, audience=DISK, revocations=False)


def test_a_tool_server_takes_the_proof(relay: Relay) -> None:
    """Three hops, all from the ledger; what the grant does not cover, or a card does not let it, is not even proven."""
    lead = a_lead(relay)
    editor = lead.hand_off("editor", "Edit", grant=Grant(may=["write:src/**"], may_delegate=["write:src/**"])).accept()
    helper = editor.hand_off("helper", "Help", may=["write:src/a.py"]).accept()
    permitted = a_server(relay).verify_call(helper.prove(CALL, audience=DISK), CALL)

    assert (helper.id, "helper", ANA) == (permitted.run, permitted.agent, permitted.principal)
    with pytest.raises(GrantDeniedError):
        helper.prove(Call("write_file", "write", "src/b.py"), audience=DISK)
    relay.register("helper", lambda _: None, card=Card(agent=AgentId("helper"), ceiling=("read:**",)))
    with pytest.raises(GrantDeniedError, match="the card of helper"):
        helper.prove(CALL, audience=DISK)


def test_one_certificate_serves_several_calls(relay: Relay) -> None:
    """The chain stays the same while its certificate is good, so that a server verifies it once; each proof is new."""
    lead = a_lead(relay)
    first, second = (lead.prove(CALL, audience=DISK).split(".") for _ in range(2))

    assert (first[0], False) == (second[0], first[1] == second[1])


def test_who_has_no_grant_proves_nothing(relay: Relay) -> None:
    """An observed run holds nothing that it could show."""
    with pytest.raises(NotFoundError, match="grant of"):
        relay.start("Look", by=ANA).prove(CALL, audience=DISK)


class TestWhoWorksNoMore:
    """The store is asked each time: what was true when the run began may be over."""

    def test_after_the_end(self, relay: Relay) -> None:
        """A run that is closed proves nothing more."""
        lead = a_lead(relay)
        lead.close()
        with pytest.raises(StreamClosedError):
            lead.prove(CALL, audience=DISK)

    def test_after_a_revocation(self, places: Places, relay: Relay) -> None:
        """Another process revokes; the certificate at hand is good yet, and is not used."""
        lead = a_lead(relay)
        lead.prove(CALL, audience=DISK)
        places.relay().revoke_grant(lead.id, by=ANA, reason="no")
        with pytest.raises(GrantRevokedError):
            lead.prove(CALL, audience=DISK)

    def test_after_somebody_took_it_over(self, places: Places, relay: Relay) -> None:
        """Whoever was fenced proves nothing; whoever goes on with the run does, with a certificate for its own key."""
        lead = a_lead(relay)
        lead.prove(CALL, audience=DISK)
        here, elsewhere = relay.resume(lead.id), places.relay().resume(lead.id)
        for fenced in (lead, here):
            with pytest.raises(FencedError):
                fenced.prove(CALL, audience=DISK)

        assert lead.id == a_server(relay).verify_call(elsewhere.prove(CALL, audience=DISK), CALL).run

    def test_after_its_key_was_replaced_for_everybody_here(self, relay: Relay) -> None:
        """Where whoever has the key may speak for a run, as in hooks, the certificate is for the key of now."""
        lead = a_lead(relay)
        lead._holding.working = replace(lead._holding.working, epoch=None)
        lead.prove(CALL, audience=DISK)
        relay.resume(lead.id)

        assert lead.id == a_server(relay).verify_call(lead.prove(CALL, audience=DISK), CALL).run

    def test_after_its_lease(self, places: Places) -> None:
        """A worker that was frozen for longer than its lease proves nothing, though nobody has swept it yet."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        a_lead(relay).hand_off("worker", "Edit", may=["write:src/**"], carrier=Carrier.WORKER)
        run = worker(relay)
        run.prove(CALL, audience=DISK)
        clock.tick(run._holding.lease.until - clock.now())  # type: ignore[union-attr]
        with pytest.raises(LeaseLostError):
            run.prove(CALL, audience=DISK)

    def test_after_the_grant(self, places: Places) -> None:
        """What has ended is not proven; a certificate never lasts longer than the grant."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        lead = relay.start(
            "Fix it", by=ANA, grant=Grant(may=["write:src/**"], until=clock.now() + timedelta(minutes=1))
        )
        lead.prove(CALL, audience=DISK)

        certificate = lead._holding.certificate
        assert certificate is not None
        assert clock.now() + timedelta(minutes=1) == certificate.said.valid_until
        clock.tick(timedelta(minutes=1))
        with pytest.raises(GrantExpiredError):
            lead.prove(CALL, audience=DISK)


class TestSeveralRelays:
    """The root key is on one of them, and is not needed to prove."""

    def test_a_worker_elsewhere(self, relay: Relay) -> None:
        """Terms by one relay and a certificate by another: the token has the root key's word on both."""
        a_lead(relay).hand_off("worker", "Edit", may=["write:src/**"], carrier=Carrier.WORKER)
        other = Relay(relay.store)
        relay.admin.enroll(*other.admin.identity())
        run = worker(other)

        assert run.id == a_server(relay).verify_call(run.prove(CALL, audience=DISK), CALL).run

    def test_after_a_rotation(self, relay: Relay) -> None:
        """What the old key granted is proven still, by a certificate of the new one."""
        lead = a_lead(relay)
        relay.admin.rotate()

        assert lead.id == a_server(relay).verify_call(lead.prove(CALL, audience=DISK), CALL).run

    def test_where_the_word_was_erased(self, relay: Relay) -> None:
        """The root key gives it again where it is; elsewhere nothing can be proven."""
        a_lead(relay).hand_off("worker", "Edit", may=["write:src/**"], carrier=Carrier.WORKER)
        other = Relay(relay.store)
        relay.admin.enroll(*other.admin.identity())
        run = worker(other, LONG)
        words = [receipt.content["enrolment"].id for receipt in receipts(relay, Kind.RELAY_ENROLLED)]
        relay.admin.erase(words, by=ANA, reason="by mistake")
        with pytest.raises(KeyMissingError):
            run.prove(CALL, audience=DISK)

        lead = a_lead(relay)
        assert lead.id == a_server(relay).verify_call(lead.prove(CALL, audience=DISK), CALL).run
