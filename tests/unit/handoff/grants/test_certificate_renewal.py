"""Certificates: for one lease, renewed with it, and not once there is nothing left to do."""

from datetime import timedelta

import pytest

from batonpass import Grant
from batonpass.errors import GrantExpiredError, GrantRevokedError, LeaseLostError
from batonpass.handoff.grants.certificate_renewal import CERTIFIED_FOR
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import Kind
from batonpass.model.grants.grant import Certificate
from batonpass.model.ledger.lease import Lease
from batonpass.relay import Relay
from batonpass.testing.clock import FrozenClock
from batonpass.wire.token import decode_part
from tests.unit.handoff.places import ANA, LONG, Places, receipts

SHORT = timedelta(seconds=30)
HOUR = timedelta(hours=1)


@pytest.fixture
def clock() -> FrozenClock:
    """Return a clock that stands still."""
    return FrozenClock()


@pytest.fixture
def relay(places: Places, clock: FrozenClock) -> Relay:
    """Return a relay with that clock."""
    return places.relay(clock=clock)


def at_work(relay: Relay, clock: FrozenClock) -> tuple[LiveRun, Lease]:
    """Let a worker begin something under a grant that ends in an hour."""
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"], until=clock.now() + HOUR))
    lead.hand_off("worker", "Edit", may=["write:**"], carrier=Carrier.WORKER)
    lease = relay.claim(holder="somewhere", lease_for=LONG, agents=["worker"])
    assert lease is not None
    return relay.handoff(lease.handoff).accept(lease=lease), lease


def certified(run: LiveRun) -> Certificate | None:
    """Return the certificate that a run would show."""
    certificate = run._holding.certificate
    return None if certificate is None else certificate.said


def test_a_heartbeat_renews_it(relay: Relay, clock: FrozenClock) -> None:
    """It ends with the lease, as our own clock counts it, and never lasts long."""
    run, lease = at_work(relay, clock)
    began = clock.now()
    relay.heartbeat(lease, SHORT)
    first = certified(run)
    clock.tick(SHORT / 3)
    relay.heartbeat(lease, SHORT)
    second = certified(run)
    relay.heartbeat(lease, HOUR)
    third = certified(run)

    ends = [None if one is None else one.valid_until - began for one in (first, second, third)]
    assert [SHORT, SHORT + SHORT / 3, SHORT / 3 + CERTIFIED_FOR] == ends


def test_the_one_in_the_acceptance_lasts_for_the_lease(places: Places) -> None:
    """Whoever reads the ledger finds whose key was bound to which terms, and for how long at first."""
    relay = places.relay()
    lead = relay.start("Fix it", by=ANA, grant=Grant(may_delegate=["write:**"]))
    lead.hand_off("worker", "Edit", may=["write:**"], carrier=Carrier.WORKER)
    lease = relay.claim(holder="somewhere", lease_for=LONG, agents=["worker"])
    assert lease is not None
    relay.handoff(lease.handoff).accept(lease=lease)
    (accepted,) = receipts(relay, Kind.HANDOFF_ACCEPTED)

    assert lease.until == decode_part(relay.read(accepted.content["certificate"].id), Certificate).said.valid_until


def test_what_is_revoked_is_not_renewed(places: Places, relay: Relay, clock: FrozenClock) -> None:
    """Whoever renews is told, and the lease is held all the same: the run can say how far it came."""
    run, lease = at_work(relay, clock)
    places.relay().revoke_grant(run._holding.root, by=ANA, reason="no")
    for _ in range(2):
        with pytest.raises(GrantRevokedError):
            relay.heartbeat(lease, HOUR)

    assert certified(run) is None
    run.report("half of it")
    run.close()
    assert State.COMPLETED is relay.handoff(lease.handoff).state()


def test_what_has_ended_is_not_renewed(relay: Relay, clock: FrozenClock) -> None:
    """A lease may go on for longer than a grant."""
    _, lease = at_work(relay, clock)
    clock.tick(HOUR)
    with pytest.raises(GrantExpiredError):
        relay.heartbeat(lease, HOUR)


def test_a_run_that_is_over_needs_none(relay: Relay, clock: FrozenClock) -> None:
    """A heartbeat that comes too late says that the lease is gone, and nothing of grants."""
    run, lease = at_work(relay, clock)
    run.close()
    with pytest.raises(LeaseLostError):
        relay.heartbeat(lease, HOUR)

    assert certified(run) is None


def test_a_heartbeat_of_another_claim_changes_nothing(places: Places, relay: Relay, clock: FrozenClock) -> None:
    """A process that only renews leases, and works on none of them, needs no keys for it."""
    run, lease = at_work(relay, clock)
    places.relay().heartbeat(lease, HOUR)

    assert (certified(run), lease) == (None, run._holding.lease)
