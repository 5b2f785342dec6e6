"""What keeps a grant ended, and an offer taken: not a clock, and not the memory of one process."""

from datetime import timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

from batonpass import Grant
from batonpass.errors import (
    CallReplayError,
    GrantDeniedError,
    GrantExpiredError,
    GrantIntegrityError,
    HandoffEndedError,
    IllegalTransitionError,
    LeaseLostError,
)
from batonpass.grants.issuer import sign
from batonpass.model.base.ids import AgentId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.card import Card
from batonpass.model.baton.items import Decision
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.grant import Terms
from batonpass.model.grants.scope_text import read_scope
from batonpass.relay import Relay, desk_of
from batonpass.store.memory import MemoryStore
from batonpass.testing.clock import FrozenClock
from batonpass.wire.token import decode_part, encode_part
from tests.unit.handoff.places import ANA, LONG, Disk, Places, receipts, worker

HOUR: Final = timedelta(hours=1)


@pytest.fixture
def disk() -> Disk:
    """Return a world in which nothing has happened."""
    return Disk()


class TestClocksThatGoBack:
    """A run goes by the latest moment that it has seen or that was recorded above it, if the clock is behind that."""

    def test_in_one_process(self, places: Places, disk: Disk) -> None:
        """What was refused because it had ended is refused when the clock was set back; so is handing it on."""
        clock = FrozenClock()
        lead = places.relay(clock=clock).start(
            "Fix it", by=ANA, grant=Grant(may=["write:**"], may_delegate=["write:**"], until=clock.now() + HOUR)
        )
        clock.tick(HOUR)
        with pytest.raises(GrantExpiredError):
            lead.call(disk.write, "a", "")
        clock.tick(-2 * HOUR)
        with pytest.raises(GrantExpiredError):
            lead.call(disk.write, "a", "")
        with pytest.raises(GrantExpiredError):
            lead.hand_off("editor", "Edit", may=["write:**"])

        assert [] == disk.written

    def test_after_a_restart(self, places: Places, disk: Disk) -> None:
        """Other processes with other clocks take the run up, and find in the ledger how late it was."""
        clock = FrozenClock()
        lead = places.relay(clock=clock).start(
            "Fix it", by=ANA, grant=Grant(may=["write:**"], until=clock.now() + HOUR)
        )
        clock.tick(HOUR)
        with pytest.raises(GrantExpiredError):
            lead.call(disk.write, "a", "")
        for _ in range(2):
            again = places.relay(clock=FrozenClock()).resume(lead.id)
            with pytest.raises(GrantExpiredError):
                again.call(disk.write, "a", "")

        assert [] == disk.written
        moments = [receipt.at for receipt in receipts(places.relay()) if receipt.root == lead.id]
        assert sorted(moments) == moments

    def test_when_an_offer_is_taken(self, places: Places) -> None:
        """A worker whose clock is behind does not take what has ended by the receipts of whoever handed it off."""
        clock = FrozenClock()
        lead = places.relay(clock=clock).start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        lead.hand_off("worker", "Edit", grant=Grant(may=["write:**"], until=clock.now() + HOUR), carrier=Carrier.WORKER)
        clock.tick(HOUR)
        lead.record(Decision("wait", why="it is late"))
        with pytest.raises(GrantExpiredError):
            worker(places.relay(clock=FrozenClock()))

    def test_a_child_knows_what_its_parent_knew(self, places: Places, disk: Disk) -> None:
        """The clock is set back between the offer and the call of the child, in one process."""
        clock = FrozenClock()
        lead = places.relay(clock=clock).start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        clock.tick(2 * HOUR)
        handoff = lead.hand_off("editor", "Edit", may=["write:**; until 2026-01-02T14:00:00Z"])
        clock.tick(-HOUR)
        with handoff as editor, pytest.raises(GrantDeniedError):
            editor.call(disk.write, "a", "")

        assert [] == disk.written

    def test_elsewhere_in_the_ledger(self, places: Places, disk: Disk) -> None:
        """A relay whose clock runs ahead, in another tree, ends nobody's grant here."""
        clock, ahead = FrozenClock(), FrozenClock()
        ahead.tick(100 * HOUR)
        lead = places.relay(clock=clock).start(
            "Fix it", by=ANA, grant=Grant(may=["write:**"], until=clock.now() + HOUR)
        )
        places.relay(clock=ahead).start("Look ahead", by=ANA).close()
        places.relay(clock=clock).resume(lead.id).call(disk.write, "a", "")

        assert [("a", "")] == disk.written


class TestOffersThatWereTaken:
    """An offer is taken once; whoever presents it again, wherever, gets nothing to do."""

    def test_while_somebody_works_on_it(self, places: Places, relay: Relay) -> None:
        """Another process presents what is running, and is refused."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        handoff = lead.hand_off("editor", "Edit", may=["write:**"])
        handoff.accept()
        with pytest.raises(HandoffEndedError):
            places.relay().handoff(handoff.id).accept()

        assert 1 == len(receipts(relay, Kind.HANDOFF_ACCEPTED))

    def test_after_it_was_finished(self, places: Places, relay: Relay, disk: Disk) -> None:
        """It comes back as a run that makes no call, whatever its grant says."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        handoff = lead.hand_off("editor", "Edit", may=["write:**"])
        with handoff as editor:
            editor.call(disk.write, "a", "")
        again = places.relay().handoff(handoff.id).accept()
        with pytest.raises(CallReplayError):
            again.call(disk.write, "b", "")

        assert ([("a", "")], 1) == (disk.written, len(receipts(relay, Kind.HANDOFF_ACCEPTED)))

    def test_with_a_lease_that_was_used(self, places: Places, relay: Relay) -> None:
        """A claim is good for one attempt: after a failure another one is needed."""
        lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
        lead.hand_off("worker", "Edit", may=["write:**"], carrier=Carrier.WORKER)
        lease = relay.claim(holder="somewhere", lease_for=LONG, agents=["worker"])
        assert lease is not None
        relay.handoff(lease.handoff).accept(lease=lease).fail(ConnectionError("gone"))
        relay.handoff(lease.handoff).retry(by=ANA)
        with pytest.raises((LeaseLostError, IllegalTransitionError)):
            places.relay().handoff(lease.handoff).accept(lease=lease)


class TestTermsInTheStore:
    """What a run is held to is read from the ledger, and believed only as far as it was committed to and signed."""

    @pytest.mark.parametrize("taken", ["by a worker", "again"])
    def test_a_forged_parent_is_refused(self, taken: str) -> None:
        """Whoever can write the database, and even sign as the relay, widens nobody's grant by other terms above."""
        relay = Relay(MemoryStore())
        relay.register("worker", lambda _: None, card=Card(agent=AgentId("worker")))
        lead = relay.start("Fix it", by=ANA, grant=Grant(may=["read:**"], may_delegate=["write:src/**"]))
        lead.hand_off("worker", "Edit", may=["write:src/**"], carrier=Carrier.WORKER)
        (started,) = receipts(relay, Kind.RUN_STARTED)
        contents: dict[Any, Any] = relay.store._tables.contents  # type: ignore[attr-defined]
        kept = contents[started.content["terms"].id]
        terms = decode_part(kept.body, Terms)
        wide = sign(replace(terms.said, may=read_scope(["write:**"])), desk_of(relay).issuer._signer)
        contents[kept.id] = replace(kept, body=encode_part(wide))

        with pytest.raises(GrantIntegrityError):
            worker(relay) if taken == "by a worker" else relay.resume(lead.id)
