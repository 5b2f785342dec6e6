"""Leases on handoffs: claimed once, held for a while, and lost at their end."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from msgspec.structs import replace

from batonpass.errors import IllegalTransitionError, LeaseLostError
from batonpass.ledger.position import Working
from batonpass.model.base.ids import AgentId, HandoffId, StreamId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.bodies.body import HandoffRetried, Outcome
from batonpass.model.ledger.lease import Lease
from batonpass.store.port import LedgerStore
from batonpass.testing.builders import ANA, Scribe, a_scribe
from batonpass.testing.clock import FrozenClock
from batonpass.testing.conformance.offers import KEY, LONG_AGO, offered
from batonpass.testing.conformance.support import WithScribe, all_receipts, at_once

A_WHILE: Final = timedelta(minutes=5)
AT_ONCE: Final = timedelta(0)  # a lease that expires at once, so that no test has to wait


def waiting(scribe: Scribe, to: str = "editor", *, parent: Working | None = None) -> HandoffId:
    """Offer a task for a worker."""
    return scribe.recording.offer(parent or scribe.start(), AgentId(to), "edit", carrier=Carrier.WORKER)


def claimed(store: LedgerStore, lease_for: timedelta = A_WHILE, *agents: str) -> Lease:
    """Claim a handoff; one must be waiting."""
    wanted = [AgentId(agent) for agent in agents] or None
    lease = store.claim(holder="worker-1", lease_for=lease_for, agents=wanted)
    assert lease is not None
    return lease


def nothing_to_claim(store: LedgerStore) -> bool:
    """Return whether there is nothing to claim."""
    return store.claim(holder="worker-2", lease_for=A_WHILE) is None


def taken(scribe: Scribe, lease: Lease) -> Working:
    """Accept a handoff under its lease."""
    return scribe.recording.accept(lease.handoff, token=lease.token)


def state_of(store: LedgerStore, handoff: HandoffId) -> State:
    """Return the state of a handoff."""
    with store.view() as view:
        return view.get_handoff(handoff).state


def leases_of(store: LedgerStore) -> list[Lease]:
    """Return the leases that are held."""
    with store.view() as view:
        return list(view.find_leases())


class Leasing(WithScribe):
    """Leases on handoffs: claimed once, held for a while, and lost at their end."""

    def test_the_oldest_is_claimed_first_and_once(self, store: LedgerStore, scribe: Scribe) -> None:
        """Workers get waiting handoffs in the order of their offers, each once, until there are no more."""
        lead = scribe.start()
        handoffs = [waiting(scribe, agent, parent=lead) for agent in ("editor", "painter", "editor")]
        leases = [claimed(store) for _ in handoffs]

        assert sorted(handoffs) == [lease.handoff for lease in leases]
        assert nothing_to_claim(store)
        assert 3 == len({lease.token for lease in leases})

    def test_the_order_is_that_of_the_store_whatever_producers_clocks_say(
        self, store: LedgerStore, scribe: Scribe
    ) -> None:
        """A producer whose clock runs an hour ahead does not wait an hour longer, and one behind passes nobody."""
        clock = FrozenClock()
        skewed = a_scribe(store, clock=clock, identity=scribe.identity, root=scribe.root)
        lead = skewed.start()
        handoffs = []
        for skew in (timedelta(0), timedelta(hours=1), timedelta(hours=-2), timedelta(minutes=59)):
            clock.tick(skew)
            handoffs.append(waiting(skewed, parent=lead))
        for_one = claimed(store, A_WHILE, "editor")
        for_some = claimed(store, A_WHILE, "editor", "painter")

        assert sorted(handoffs) != handoffs
        assert handoffs == [lease.handoff for lease in (for_one, for_some, claimed(store), claimed(store))]

    def test_what_is_postponed_is_claimed_later(self, store: LedgerStore, scribe: Scribe) -> None:
        """A handoff that nobody may claim yet is passed over, and claimed when its time has come."""
        lead = scribe.start()
        first, second = waiting(scribe, parent=lead), waiting(scribe, "painter", parent=lead)
        for handoff in (first, second):
            store.postpone(handoff, A_WHILE)

        assert nothing_to_claim(store)
        for agents in (["editor"], ["editor", "painter"]):
            assert store.claim(holder="w", lease_for=A_WHILE, agents=[AgentId(agent) for agent in agents]) is None
        store.postpone(second, AT_ONCE)
        assert second == claimed(store).handoff
        assert (State.READY, True) == (state_of(store, first), nothing_to_claim(store))

    def test_a_handoff_is_postponed_before_it_is_ready_again(self, store: LedgerStore, scribe: Scribe) -> None:
        """Before an attempt ends, it is said when the next may begin, so that nobody claims it in between."""
        handoff = waiting(scribe)
        taken(scribe, claimed(store))
        store.postpone(handoff, A_WHILE)
        scribe.recording.lapse(handoff)

        assert (State.READY, True) == (state_of(store, handoff), nothing_to_claim(store))
        store.postpone(handoff, AT_ONCE)
        assert handoff == claimed(store).handoff

    def test_a_worker_claims_for_its_agents(self, store: LedgerStore, scribe: Scribe) -> None:
        """A claim for some agents gets the oldest handoff for one of them, and no other."""
        lead = scribe.start()
        editing, painting, printing = (
            waiting(scribe, agent, parent=lead) for agent in ("editor", "painter", "printer")
        )

        assert store.claim(holder="w", lease_for=A_WHILE, agents=[]) is None
        assert store.claim(holder="w", lease_for=A_WHILE, agents=[AgentId("nobody")]) is None
        assert min(painting, printing) == claimed(store, A_WHILE, "printer", "painter").handoff
        assert max(painting, printing) == claimed(store, A_WHILE, "printer", "painter").handoff
        assert editing == claimed(store, A_WHILE, "editor").handoff

    def test_what_its_caller_carries_is_never_claimed(self, store: LedgerStore, scribe: Scribe) -> None:
        """A caller-carried handoff is never claimed by workers."""
        handoff = scribe.offer(scribe.start())
        scribe.recording.close(scribe.recording.accept(handoff), Outcome.FAILED)
        scribe.recording.act(handoff, lambda *_: HandoffRetried(handoff=handoff, by=ANA))

        assert State.OFFERED == state_of(store, handoff)
        assert nothing_to_claim(store)

    def test_a_lease_says_who_and_until_when(self, store: LedgerStore, scribe: Scribe) -> None:
        """The end of a lease is counted from now, by the store's clock."""
        waiting(scribe)
        lease = claimed(store)
        begun = lease.until - A_WHILE

        assert "worker-1" == lease.holder
        assert timedelta(minutes=1) > abs(datetime.now(UTC) - begun)
        assert [lease] == leases_of(store)

    def test_a_claimed_handoff_shows_as_claimed(self, store: LedgerStore, scribe: Scribe) -> None:
        """Every lookup shows a claimed handoff as claimed; in an older view it is still ready."""
        lead = scribe.start()
        handoff = offered(scribe, lead, scope=lead.run.id, deadline=LONG_AGO, carrier=Carrier.WORKER)
        other = waiting(scribe, parent=lead)
        with store.view() as before:
            before.counts()
            claimed(store)
            assert State.READY == before.get_handoff(handoff).state
            assert [] == list(before.find_leases())

        with store.view() as view:
            for found in (
                view.get_handoff(handoff),
                view.get_offer(StreamId(lead.run.id), KEY),
                *view.find_overdue(),
                *(known for known in view.find_handoffs() if known.id == handoff),
                *(known for known in view.find_handoffs(root=lead.run.root) if known.id == handoff),
                *(known for known in view.find_handoffs(parent=lead.run.id) if known.id == handoff),
            ):
                assert (handoff, State.CLAIMED) == (found.id, found.state)
            assert State.READY == view.get_handoff(other).state
            assert 2 == len(list(view.find_handoffs()))

    def test_racing_workers_never_get_the_same(self, store: LedgerStore, scribe: Scribe) -> None:
        """Many workers that claim at once get different handoffs, and in the end all of them."""
        lead = scribe.start()
        handoffs = {waiting(scribe, parent=lead) for _ in range(12)}
        leases: list[Lease | None] = []

        def work(agents: list[AgentId] | None) -> None:
            leases.extend([store.claim(holder="worker", lease_for=A_WHILE, agents=agents) for _ in range(3)])

        at_once(work, (None, [AgentId("editor")]) * 3)
        # A store may skip handoffs that others are just claiming, so a claim may find nothing although some are left.
        while (lease := store.claim(holder="worker", lease_for=A_WHILE)) is not None:
            leases.append(lease)

        got = [lease.handoff for lease in leases if lease is not None]
        assert (12, handoffs) == (len(got), set(got))

    def test_work_begins_under_its_lease(self, store: LedgerStore, scribe: Scribe) -> None:
        """The holder of the lease's token takes the handoff, and keeps the lease while it runs."""
        waiting(scribe)
        lease = claimed(store)
        taken(scribe, lease)

        assert State.RUNNING == state_of(store, lease.handoff)
        assert [lease] == leases_of(store)
        assert nothing_to_claim(store)

    def test_a_lost_lease_begins_nothing(self, store: LedgerStore, scribe: Scribe) -> None:
        """Another token than the lease's takes nothing, and nothing is written."""
        waiting(scribe)
        lease = claimed(store)
        before = len(all_receipts(store))

        with pytest.raises(LeaseLostError) as lost:
            taken(scribe, replace(lease, token=lease.token ^ 1))

        assert lease.handoff == lost.value.handoff
        assert (before, State.CLAIMED) == (len(all_receipts(store)), state_of(store, lease.handoff))
        taken(scribe, lease)

    def test_a_token_without_any_lease_is_lost(self, store: LedgerStore, scribe: Scribe) -> None:
        """A token is refused for a handoff without a lease, and for a caller-carried one."""
        for handoff in (waiting(scribe), scribe.offer(scribe.start())):
            with pytest.raises(LeaseLostError):
                scribe.recording.accept(handoff, token=1)

        assert [] == leases_of(store)

    def test_one_token_begins_one_attempt(self, store: LedgerStore, scribe: Scribe) -> None:
        """A lease does not let a worker accept the same handoff twice."""
        waiting(scribe)
        lease = claimed(store)
        taken(scribe, lease)

        with pytest.raises(IllegalTransitionError):
            taken(scribe, lease)

    def test_an_attempt_may_begin_without_a_lease(self, store: LedgerStore, scribe: Scribe) -> None:
        """Without a lease, a waiting handoff can be taken directly, and can no longer be claimed."""
        handoff = waiting(scribe)
        scribe.recording.accept(handoff)

        assert (State.RUNNING, []) == (state_of(store, handoff), leases_of(store))
        assert nothing_to_claim(store)

    def test_a_released_handoff_can_be_claimed_again(self, store: LedgerStore, scribe: Scribe) -> None:
        """A lease that is given back before the work starts frees the handoff; the old token is void."""
        handoff = waiting(scribe)
        first = claimed(store)
        store.release(first)

        assert (State.READY, []) == (state_of(store, handoff), leases_of(store))
        with pytest.raises(LeaseLostError):
            taken(scribe, first)
        assert handoff == claimed(store).handoff

    def test_a_released_attempt_goes_on_and_cannot_be_claimed(self, store: LedgerStore, scribe: Scribe) -> None:
        """A lease that is given back during the work does not free the handoff."""
        handoff = waiting(scribe)
        lease = claimed(store)
        child = taken(scribe, lease)
        store.release(lease)

        assert (State.RUNNING, []) == (state_of(store, handoff), leases_of(store))
        assert nothing_to_claim(store)
        scribe.recording.close(child)
        assert State.COMPLETED == state_of(store, handoff)

    def test_a_lost_lease_stays_lost(self, store: LedgerStore, scribe: Scribe) -> None:
        """A lost lease can be neither given back nor renewed."""
        waiting(scribe)
        first = claimed(store, AT_ONCE)
        second = store.seize(holder="sweeper", lease_for=A_WHILE)
        store.release(first)

        assert [second] == leases_of(store)
        with pytest.raises(LeaseLostError):
            store.renew(first, A_WHILE)

    def test_a_lease_is_renewed_from_now(self, store: LedgerStore, scribe: Scribe) -> None:
        """A heartbeat extends a lease, also an expired one that nobody has taken over."""
        waiting(scribe)
        first = claimed(store, AT_ONCE)
        second = store.renew(first, A_WHILE)
        taken(scribe, first)
        third = store.renew(second, 2 * A_WHILE)

        assert replace(first, until=second.until) == second
        assert A_WHILE <= second.until - first.until
        assert A_WHILE <= third.until - second.until
        assert [third] == leases_of(store)
        assert store.seize(holder="sweeper", lease_for=A_WHILE) is None

    @pytest.mark.parametrize("begun", [False, True], ids=["before it began", "while it runs"])
    def test_what_has_run_out_is_seized_once(self, store: LedgerStore, scribe: Scribe, *, begun: bool) -> None:
        """An expired lease is taken over once, under a new token; a running one is not."""
        lead = scribe.start()
        waiting(scribe, "painter", parent=lead)
        waiting(scribe, "editor", parent=lead)
        held, run_out = claimed(store, A_WHILE, "painter"), claimed(store, AT_ONCE, "editor")
        if begun:
            taken(scribe, run_out)
        seized = store.seize(holder="sweeper", lease_for=A_WHILE)

        assert seized is not None
        assert (run_out.handoff, "sweeper") == (seized.handoff, seized.holder)
        assert run_out.token != seized.token
        assert {held, seized} == set(leases_of(store))
        assert store.seize(holder="sweeper", lease_for=A_WHILE) is None
        with pytest.raises(LeaseLostError):
            store.renew(run_out, A_WHILE)

    def test_racing_sweepers_never_get_the_same(self, store: LedgerStore, scribe: Scribe) -> None:
        """Of many takeovers at once, each gets a different lease or none."""
        lead = scribe.start()
        for _ in range(4):
            waiting(scribe, parent=lead)
            claimed(store, AT_ONCE)
        seized: list[Lease | None] = []

        def sweep(_: int) -> None:
            seized.append(store.seize(holder="sweeper", lease_for=A_WHILE))

        at_once(sweep, range(6))
        while (lease := store.seize(holder="sweeper", lease_for=A_WHILE)) is not None:
            seized.append(lease)

        got = [lease.handoff for lease in seized if lease is not None]
        assert (4, 4) == (len(got), len(set(got)))
