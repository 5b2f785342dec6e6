"""A worker runs what waits, once, and leaves nothing behind when something goes wrong."""

import threading
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.dispatch.worker import Worker
from batonpass.errors import (
    InvalidValueError,
    LeaseLostError,
    StoreAlteredError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import AgentId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.lease import Lease
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.store.memory import MemoryStore
from tests.unit.dispatch.fleets import MOMENT, a_fleet, in_background, until

SHORT = timedelta(milliseconds=30)


def done(run: LiveRun) -> str:
    return f"did: {run.task}"


def test_the_oldest_waiting_handoff_is_run() -> None:
    """One call runs one handoff, the oldest first, and says when there is none."""
    fleet = a_fleet(editor=done)
    first, second = fleet.offer(task="first of two"), fleet.offer(task="second of two")
    worker = fleet.worker()

    assert (True, State.COMPLETED, State.READY) == (worker.work_one(), first.state(), second.state())
    assert (True, False) == (worker.work_one(), worker.work_one())
    assert ["did: first of two", "did: second of two"] == [first.result().value, second.result().value]
    assert [("editor", "completed", 1)] * 2 == fleet.states()


def test_only_agents_that_run_here_are_claimed() -> None:
    """A handoff whose agent has no runner here is left to others, and so is one that was not asked for."""
    fleet = a_fleet(editor=done, reviewer=done)
    strange, review = fleet.offer("stranger"), fleet.offer("reviewer")

    assert [False, False] == [fleet.worker(agents=given).work_one() for given in (["editor"], ["stranger"])]
    assert (True, False) == (fleet.worker().work_one(), fleet.worker().work_one())
    assert (State.READY, State.COMPLETED) == (strange.state(), review.state())


def test_a_relay_without_runners_claims_nothing() -> None:
    """A worker that can run nobody takes nothing from those who can."""
    fleet = a_fleet()
    offered = fleet.offer()

    assert (False, State.READY) == (fleet.worker().work_one(), offered.state())


def test_a_runner_that_raises_fails_its_attempt_and_not_the_worker() -> None:
    """The attempt is recorded as failed, with the reason, and the worker takes the next."""

    def broken(_: LiveRun) -> None:
        raise RuntimeError("no such file")

    fleet = a_fleet(editor=broken, reviewer=done)
    failing = fleet.offer()
    fleet.offer("reviewer")
    worker = fleet.worker()

    assert (True, True) == (worker.work_one(), worker.work_one())
    assert (State.FAILED, "RuntimeError: no such file") == (failing.state(), failing.result().reason)
    assert [("editor", "failed", 1), ("reviewer", "completed", 1)] == fleet.states()


def test_what_a_runner_returns_must_be_json() -> None:
    """A result that nobody could read later is a failure that says so."""
    fleet = a_fleet(editor=lambda _: object())
    offered = fleet.offer()

    assert (True, State.FAILED) == (fleet.worker().work_one(), offered.state())
    assert "a runner returns a report, a text, or JSON" in offered.result().reason


def test_whoever_interrupts_a_worker_is_obeyed() -> None:
    """The attempt is recorded as failed, and the interrupt goes on."""

    def interrupted(_: LiveRun) -> None:
        raise KeyboardInterrupt

    fleet = a_fleet(editor=interrupted)
    offered = fleet.offer()
    with pytest.raises(KeyboardInterrupt):
        fleet.worker().work_one()

    assert (State.FAILED, []) == (offered.state(), fleet.leases())


def test_a_close_that_the_policy_refuses_fails_the_attempt() -> None:
    """An attempt that goes on with what nobody verified, against the policy, fails; it does not stay open."""

    def lead(run: LiveRun) -> str:
        run.hand_off("editor", "a part of it", run=done).wait()
        return "all done"

    fleet = a_fleet(policy=HandoffPolicy(verified_only=True), lead=lead)
    offered = fleet.offer("lead", "the whole of it")

    assert (True, State.FAILED, []) == (fleet.worker().work_one(), offered.state(), fleet.leases())


def test_a_coroutine_function_is_a_runner_too() -> None:
    """A worker awaits what a runner returns."""

    async def editor(run: LiveRun) -> str:
        return run.task

    fleet = a_fleet(editor=editor)
    offered = fleet.offer()
    fleet.worker().work_one()

    assert "Make total() round half-even" == offered.result().value


def test_what_validation_asks_about_is_no_crash() -> None:
    """A baton that its receiver cannot act on is asked about; the worker goes on, and after the answer it runs."""
    fleet = a_fleet(policy=HandoffPolicy(asks=True), editor=done)
    offered = fleet.offer(task="Change the file that we talked about", inputs=["the file"])
    worker = fleet.worker()

    assert (True, State.ASKED, []) == (worker.work_one(), offered.state(), fleet.leases())
    assert [("editor", "asked", 0)] == fleet.states()
    offered.answer("src/invoice.py", by="user:ana", files={"the file": "total = 1"})
    assert (True, State.COMPLETED) == (worker.work_one(), offered.state())


class TroubledStore(MemoryStore):
    """A store that fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble: list[tuple[str, Exception]] = []
        self.renewals = 0

    def _fail(self, act: str) -> None:
        if self.trouble and self.trouble[0][0] == act:
            raise self.trouble.pop(0)[1]

    def append(self, entries: Sequence[Entry]) -> None:
        """Write, unless told otherwise."""
        self._fail("append")
        super().append(entries)

    def claim(self, *, holder: str, lease_for: timedelta, agents: Collection[AgentId] | None = None) -> Lease | None:
        """Take a lease, unless told otherwise."""
        self._fail("claim")
        return super().claim(holder=holder, lease_for=lease_for, agents=agents)

    def renew(self, lease: Lease, lease_for: timedelta) -> Lease:
        """Hold a lease for longer, unless told otherwise."""
        self._fail("renew")
        renewed = super().renew(lease, lease_for)
        self.renewals += 1
        return renewed


def test_a_store_that_fails_before_acceptance_leaves_the_handoff_to_others() -> None:
    """The lease is given back at once: nobody has to wait until it runs out."""
    store = TroubledStore()
    fleet = a_fleet(store, editor=done)
    offered = fleet.offer()
    store.trouble = [("append", StoreFullError("no room"))]

    with pytest.raises(StoreFullError):
        fleet.worker().work_one()

    assert (State.READY, []) == (offered.state(), fleet.leases())
    assert (True, State.COMPLETED) == (fleet.worker().work_one(), offered.state())


def test_a_lease_that_is_lost_before_acceptance_is_no_crash() -> None:
    """Whoever has it now works on it; this worker goes on."""
    store = TroubledStore()
    fleet = a_fleet(store, editor=done)
    offered = fleet.offer()
    store.trouble = [("append", LeaseLostError(offered.id))]

    assert (True, []) == (fleet.worker().work_one(), fleet.states())


def test_an_attempt_whose_end_cannot_be_written_keeps_its_lease() -> None:
    """Without its lease nobody would ever find that it died; when it runs out, the next worker goes on."""
    store = TroubledStore()

    def fatal(_: LiveRun) -> str:
        if not store.trouble and offered.info().attempt == 1:
            store.trouble = [("append", StoreFullError("no room"))] * 2
        return "done"

    fleet = a_fleet(store, editor=fatal)
    offered = fleet.offer()
    with pytest.raises(StoreFullError):
        fleet.worker(name="first", lease_for=MOMENT * 300).work_one()

    assert (State.RUNNING, ["first"]) == (offered.state(), fleet.leases())
    until(fleet.relay.sweep)
    assert (True, State.COMPLETED, 2) == (fleet.worker().work_one(), offered.state(), offered.result().attempt)


def test_a_lease_is_held_for_as_long_as_the_work_takes() -> None:
    """A runner may take longer than a lease lasts; also if the store fails at one heartbeat."""
    store = TroubledStore()

    def slow(_: LiveRun) -> str:
        until(lambda: store.renewals >= 5)
        return "done"

    fleet = a_fleet(store, editor=slow)
    offered = fleet.offer()
    store.trouble = [("renew", StoreBusyError("busy"))]

    assert (True, 0) == (fleet.worker(lease_for=SHORT * 10).work_one(), fleet.relay.sweep())
    assert (State.COMPLETED, 1) == (offered.state(), offered.result().attempt)


def test_one_thread_holds_all_leases_of_a_worker() -> None:
    """Handoffs that follow each other share it; it ends when nothing is held, and is there again when something is."""
    beating: list[threading.Thread] = []

    def look(_: LiveRun) -> str:
        beating.extend(one for one in threading.enumerate() if one is worker._heart._thread)
        return "done"

    fleet = a_fleet(editor=look)
    for number in range(3):
        fleet.offer(task=f"task {number}")
    worker = fleet.worker(lease_for=timedelta(seconds=1))

    assert [True, True] == [worker.work_one(), worker.work_one()]
    until(lambda: worker._heart._thread is None)
    assert worker.work_one()
    first, second, third = beating
    assert first is second
    assert third is not first


def test_a_worker_whose_lease_is_lost_delivers_nothing() -> None:
    """Its attempt lapsed, and another worker has finished: the late outcome is kept as evidence, and nothing else."""
    store = TroubledStore()
    begun, frozen = threading.Event(), threading.Event()

    def send() -> str:
        begun.set()
        frozen.wait(20)
        return "sent"

    def editor(run: LiveRun) -> str:
        return run.call(send) if run.attempt == 1 else "done by another"

    fleet = a_fleet(store, editor=editor)
    offered = fleet.offer()
    stalled = in_background(fleet.worker(name="stalled", lease_for=timedelta(hours=1)).work_one)
    begun.wait(20)
    with store.view() as view:
        (lease,) = view.find_leases()
    store.renew(lease, -SHORT)
    fleet.relay.sweep()
    fleet.worker(name="other").work_one()
    frozen.set()
    stalled.join(20)

    assert ["handoff.lapsed", "handoff.late"] == fleet.kinds(offered.id)
    assert ("done by another", 2) == (offered.result().value, offered.result().attempt)
    assert [("editor", "completed", 2), ("editor", "lapsed", 1)] == fleet.states()
    assert 1 == fleet.relay.verify().relays


def test_an_offer_that_nobody_can_read_is_declined() -> None:
    """It is the oldest: if it were given back, every worker would take it again and none would come to the next."""
    store = MemoryStore()
    fleet = a_fleet(store, editor=done)
    offered = fleet.offer(rationale="because")
    tables = store._tables.contents
    (brief,) = [content for content in tables.values() if content.body is not None and b'"brief"' in content.body]
    tables[brief.id] = replace(brief, body=b"{")
    following = fleet.offer(task="the next one")
    worker = fleet.worker()

    assert (True, True, False) == (worker.work_one(), worker.work_one(), worker.work_one())
    assert (State.DECLINED, State.COMPLETED) == (offered.state(), following.state())
    assert offered.result().reason.startswith("it cannot be read: ")


def test_a_lease_lasts_for_a_while() -> None:
    """A lease of no time is a mistake."""
    with pytest.raises(InvalidValueError):
        Worker(a_fleet().relay, lease_for=timedelta(0))


def test_workers_have_names_of_their_own() -> None:
    """Two workers of one process are told apart."""
    fleet = a_fleet()

    assert 2 == len({fleet.worker().name, fleet.worker().name})
    assert "nightly" == fleet.worker(name="nightly").name


def test_a_worker_stops_after_the_current_handoff() -> None:
    """Whoever says stop gets the current handoff finished, and no further one begun."""
    stop = threading.Event()

    def editor(run: LiveRun) -> str:
        stop.set()
        return run.task

    fleet = a_fleet(editor=editor)
    first, second = fleet.offer(task="the first"), fleet.offer(task="the second")
    fleet.worker().run_until(stop, poll=MOMENT)

    assert (State.COMPLETED, State.READY) == (first.state(), second.state())


def test_a_worker_looks_again_when_nothing_waits() -> None:
    """Work that comes later is found, and a store that fails for a moment is no reason to leave."""
    store = TroubledStore()
    troubles: list[Any] = []
    stop = threading.Event()
    fleet = a_fleet(store, editor=done)
    store.trouble = [("claim", StoreBusyError("busy")), ("claim", StoreBusyError("still busy"))]
    thread = in_background(lambda: fleet.worker(troubled=troubles.append).run_until(stop, poll=MOMENT * 5))
    until(lambda: not store.trouble)
    offered = fleet.offer()
    until(lambda: offered.state() is State.COMPLETED)
    stop.set()
    thread.join(20)

    assert ["busy", "still busy"] == [str(error) for error in troubles]
    assert not thread.is_alive()


@pytest.mark.parametrize("trouble", [StoreFullError("no room"), StoreReadOnlyError("a standby")], ids=str)
def test_a_worker_lives_through_what_somebody_will_mend(trouble: StoreError) -> None:
    """A full disk is freed and a primary comes back: the worker says so each time, and goes on when it can."""
    store = TroubledStore()
    troubles: list[Any] = []
    stop = threading.Event()
    fleet = a_fleet(store, editor=done)
    offered = fleet.offer()
    store.trouble = [("claim", trouble), ("claim", trouble)]
    thread = in_background(lambda: fleet.worker(troubled=troubles.append).run_until(stop, poll=MOMENT))
    until(lambda: offered.state() is State.COMPLETED)
    stop.set()
    thread.join(20)

    assert [trouble, trouble] == troubles


def test_a_fault_that_does_not_pass_ends_the_worker() -> None:
    """An altered ledger needs somebody; a worker that went on would hide it."""
    store = TroubledStore()
    fleet = a_fleet(store, editor=done)
    store.trouble = [("claim", StoreAlteredError("a trigger"))]

    with pytest.raises(StoreAlteredError):
        fleet.worker().run_until(threading.Event(), poll=MOMENT)


def test_a_busy_worker_sweeps() -> None:
    """While a worker is at a long task, what another left behind is ended by it all the same."""
    swept = threading.Event()

    def patient(_: LiveRun) -> str:
        return "done" if swept.wait(20) else "nobody swept"

    fleet = a_fleet(editor=patient, reviewer=done)
    lost = fleet.offer("reviewer", "left behind")
    busy = fleet.offer("editor", "a long task")
    stop = threading.Event()
    # It begins with the long task, and sweeps nothing before: what is due comes due only afterwards.
    worker = fleet.worker(agents=["editor"])
    thread = in_background(lambda: worker.run_until(stop, poll=timedelta(milliseconds=10)))
    until(lambda: busy.state() is State.RUNNING)
    # Long enough to accept under it: a lease that has run out already may be swept before that.
    lease = fleet.relay.claim(holder="dead", lease_for=timedelta(seconds=1), agents=["reviewer"])
    assert lease is not None
    lost.accept(lease=lease)
    until(lambda: lost.state() is State.READY)
    swept.set()
    until(lambda: busy.state() is State.COMPLETED)
    stop.set()
    thread.join(20)

    assert ("done", 1) == (busy.result().value, lost.info().attempt)


def test_a_worker_sweeps_what_others_left_behind() -> None:
    """An attempt whose worker died is ended and tried again by whoever is there."""
    fleet = a_fleet(editor=done)
    offered = fleet.offer()
    lease = fleet.relay.claim(holder="dead", lease_for=SHORT)
    assert lease is not None
    offered.accept(lease=lease)
    stop = threading.Event()
    thread = in_background(lambda: fleet.worker().run_until(stop, poll=MOMENT * 5))
    until(lambda: offered.state() is State.COMPLETED)
    stop.set()
    thread.join(20)

    assert ["handoff.lapsed"] == fleet.kinds(offered.id)
    assert [("editor", "completed", 2)] == fleet.states()


def test_eight_workers_run_each_handoff_once() -> None:
    """However many take from one queue, nothing is run twice and nothing is left."""
    ran: list[str] = []

    def editor(run: LiveRun) -> None:
        ran.append(run.task)

    fleet = a_fleet(editor=editor)
    tasks = [f"part {number} of many" for number in range(40)]
    for task in tasks:
        fleet.offer(task=task)
    stop = threading.Event()
    threads = [in_background(lambda: fleet.worker().run_until(stop, poll=MOMENT * 5)) for _ in range(8)]
    until(lambda: len(fleet.worked) == len(tasks))
    stop.set()
    for thread in threads:
        thread.join(20)

    assert sorted(tasks) == sorted(ran)


def test_a_worker_is_told_that_its_grant_was_revoked() -> None:
    """A heartbeat says so, once, while the run works; it can report how far it came."""
    told: list[str] = []

    def revoked(run: LiveRun) -> str:
        fleet.relay.revoke_grant(run.id, by="user:ana", reason="no")
        until(lambda: told)
        return "half of it"

    fleet = a_fleet(editor=revoked)
    handoff = fleet.offer(may=["write:**"])
    fleet.worker(lease_for=SHORT, troubled=lambda error: told.append(error.code)).work_one()

    assert (["grant.revoked"], State.COMPLETED, "half of it") == (told, handoff.state(), handoff.result().value)


def test_a_grant_that_does_not_hold_is_declined() -> None:
    """Terms that no relay signed, or that are over, keep no worker from its next handoff."""
    fleet = a_fleet(editor=done)
    forged, next_one = fleet.offer(task="forged", may=["write:**"]), fleet.offer(task="next")
    tables = fleet.relay.store._tables  # type: ignore[attr-defined]
    terms = next(row for row in tables.contents.values() if row.body and b"urn:batonpass:terms" in row.body)
    tables.contents[terms.id] = replace(terms, body=terms.body[:-1] + bytes([terms.body[-1] ^ 1]))
    worker = fleet.worker()

    assert [True, True] == [worker.work_one(), worker.work_one()]
    assert (State.DECLINED, State.COMPLETED) == (forged.state(), next_one.state())
    assert "its grant does not hold" in (forged.result().reason or "")
