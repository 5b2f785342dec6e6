"""Waiting holds no worker: an attempt that waits for a child of a worker stops, and goes on when the child ends."""

import threading
from datetime import timedelta
from functools import partial

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import HandoffSuspendedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.transfer import close
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.offer_options import Handling
from tests.unit.dispatch.fleets import Fleet, a_fleet, in_background, until


def leaf(run: LiveRun) -> str:
    return f"did: {run.task}"


def a_nested_fleet(made: list[str], *, policy: HandoffPolicy | None = None) -> Fleet:
    """Return a fleet whose parents make one call each, and wait for a child that a worker has to run."""

    def parent(run: LiveRun) -> str:
        run.call(made.append, run.task)
        child = run.hand_off("leaf", f"a part of {run.task}", carrier=Carrier.WORKER).wait()
        return f"{run.task}: {child.value}"

    return a_fleet(parent=parent, leaf=leaf, policy=policy)


def test_two_nested_parents_on_one_worker_finish() -> None:
    """Each stops when it comes to its child, and goes on from the record: what it had done is not done again."""
    made: list[str] = []
    fleet = a_nested_fleet(made)
    parents = [fleet.offer("parent", task) for task in ("one", "two")]
    worker = fleet.worker()
    while worker.work_one():
        assert [] == fleet.leases()

    assert ["one", "two"] == made
    assert ["one: did: a part of one", "two: did: a part of two"] == [each.result().value for each in parents]
    assert [(State.COMPLETED, 2)] * 2 == [(each.state(), each.info().attempt) for each in parents]
    assert ["handoff.held", "handoff.resumed"] == fleet.kinds(parents[0].id)
    fleet.lead.close()
    verify_ledger(fleet.relay.store)


def test_two_workers_that_run_two_parents_do_not_hang() -> None:
    """Both workers begin a parent; neither waits for the other to run its child."""
    fleet = a_nested_fleet([])
    parents = [fleet.offer("parent", task) for task in ("one", "two")]
    stop = threading.Event()
    threads = [in_background(partial(fleet.worker().run_until, stop)) for _ in range(2)]
    until(lambda: all(each.result().delivered for each in parents))
    stop.set()
    for thread in threads:
        thread.join()

    assert [State.COMPLETED] * 2 == [each.state() for each in parents]


def test_an_attempt_that_waited_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that stopped for a child has its one attempt and its one retry left, as if it had waited."""
    monkeypatch.setattr(close, "pause_after", lambda _: timedelta(0))
    tries: list[int] = []

    def parent(run: LiveRun) -> None:
        run.hand_off("leaf", "a part", carrier=Carrier.WORKER).wait()
        tries.append(run.attempt)
        raise RuntimeError("busy")

    fleet = a_fleet(parent=parent, leaf=leaf, policy=HandoffPolicy(max_attempts=2))
    offered = fleet.offer("parent", "the whole", handling=Handling(retries=5))
    worker = fleet.worker()
    while worker.work_one():
        pass

    assert ([2, 3], "handoff.attempts_exhausted") == (tries, offered.result().error)


def test_who_has_a_timeout_waits_and_who_is_no_worker_waits() -> None:
    """A caller's own process may wait, and whoever says how long has decided so."""
    found: list[str] = []

    def parent(run: LiveRun) -> None:
        child = run.hand_off("leaf", "a part", carrier=Carrier.WORKER)
        with pytest.raises(TimeoutError):
            child.wait(timedelta(0))
        with pytest.raises(HandoffSuspendedError) as stopped:
            child.wait()
        found.append(stopped.value.awaits)
        raise stopped.value

    fleet = a_fleet(parent=parent)
    offered = fleet.offer("parent", "the whole")
    with pytest.raises(TimeoutError):
        offered.wait(timedelta(0))
    fleet.worker().work_one()

    assert (State.HELD, 1, None) == (offered.state(), len(found), offered.result().blocked_by)
