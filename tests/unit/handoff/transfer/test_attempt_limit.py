"""Attempts end: a handoff is tried again by itself only so often, with a pause that grows, and then it is parked."""

import sys
from collections.abc import Callable
from datetime import timedelta
from types import FrameType

import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import InvalidValueError
from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.transfer import close, sweep
from batonpass.handoff.transfer.attempt_limit import pause_after
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.model.policy.offer_options import Handling
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from tests.unit.dispatch.fleets import a_fleet

AT_ONCE = timedelta(0)
LONG = timedelta(minutes=10)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return after which attempts there was a pause; here it takes no time."""
    found: list[int] = []

    def pause(attempt: int) -> timedelta:
        found.append(attempt)
        return AT_ONCE

    monkeypatch.setattr(close, "pause_after", pause)
    monkeypatch.setattr(sweep, "pause_after", pause)
    return found


def broken(_: LiveRun) -> None:
    raise RuntimeError("no such file")


def lost(relay: Relay, handoff: LiveHandoff, times: int) -> None:
    """Let workers die of a handoff."""
    for _ in range(times):
        lease = relay.claim(holder="worker", lease_for=AT_ONCE)
        assert lease is not None
        handoff.accept(lease=lease)
        assert 1 == relay.sweep()


def test_a_lost_worker_is_replaced_only_so_often(pauses: list[int]) -> None:
    """The policy says how many attempts begin by themselves; then the handoff has failed, with its own code."""
    relay = Relay(MemoryStore(), policy=HandoffPolicy(max_attempts=3))
    lead = relay.start("Edit it", by="user:ana")
    handoff = lead.hand_off("editor", "The poison", carrier=Carrier.WORKER)
    lost(relay, handoff, 3)

    result = handoff.result()
    assert (State.FAILED, 3, "handoff.attempts_exhausted") == (result.state, result.attempt, result.error)
    assert "after 3 attempts" in result.reason
    assert relay.claim(holder="worker", lease_for=LONG) is None
    assert [1] == pauses  # the second attempt begins at once, because a lease has passed already
    lead.close()
    verify_ledger(relay.store)


@pytest.mark.parametrize(
    ("relays", "own", "attempts"),
    [
        pytest.param(None, 2, 2, id="only the offer says how many"),
        pytest.param(3, 2, 2, id="the smaller counts: that of the offer"),
        pytest.param(2, 3, 2, id="the smaller counts: that of the relay"),
        pytest.param(7, None, 7, id="a policy about something else does not say five"),
        pytest.param(None, None, 5, id="nobody says how many"),
    ],
)
def test_the_policy_of_an_offer_says_how_often_it_is_tried(
    pauses: list[int], relays: int | None, own: int | None, attempts: int
) -> None:
    """It counts after a lost worker and after a failure, in every process that sweeps, and can only allow fewer."""
    policy = HandoffPolicy(max_attempts=own, refuse_loops=True, sanitize_context=False)
    fleet = a_fleet(editor=broken, policy=HandoffPolicy(max_attempts=relays))
    handoff = fleet.lead.hand_off("editor", "Poison", carrier=Carrier.WORKER, handling=Handling(policy=policy))
    lost(fleet.relay, handoff, attempts)
    failing = fleet.offer(handling=Handling(retries=9, policy=policy))
    worker = fleet.worker()
    while worker.work_one():
        pass

    found = [(one.state, one.attempt, one.error) for one in (handoff.result(), failing.result())]
    assert [(State.FAILED, attempts, "handoff.attempts_exhausted")] * 2 == found
    assert pauses


def test_whoever_retries_a_parked_handoff_gets_one_more_attempt(pauses: list[int]) -> None:
    """By itself nothing happens to it; a person or a program may decide otherwise, each time for one attempt."""
    relay = Relay(MemoryStore(), policy=HandoffPolicy(max_attempts=2))
    handoff = relay.start("Edit it", by="user:ana").hand_off("editor", "The poison", carrier=Carrier.WORKER)
    lost(relay, handoff, 2)
    handoff.retry(by="user:ana")
    lost(relay, handoff, 1)

    assert (State.FAILED, 3, []) == (handoff.state(), handoff.info().attempt, pauses)


def test_what_a_parked_attempt_had_handed_off_is_withdrawn(pauses: list[int]) -> None:
    """Nobody will take it up again, so nobody waits for it."""
    relay = Relay(MemoryStore(), policy=HandoffPolicy(max_attempts=1))
    handoff = relay.start("Edit it", by="user:ana").hand_off("editor", "The poison", carrier=Carrier.WORKER)
    lease = relay.claim(holder="worker", lease_for=AT_ONCE)
    assert lease is not None
    child = handoff.accept(lease=lease).hand_off("printer", "Print it", carrier=Carrier.WORKER)
    relay.sweep()

    assert ((State.FAILED, State.CANCELLED), []) == ((handoff.state(), child.state()), pauses)


@pytest.mark.parametrize("most", [5, 2])
def test_a_failure_is_retried_as_often_as_its_offer_says(pauses: list[int], most: int) -> None:
    """`retries=3` is four attempts, unless the policy allows fewer; the last failure says that there are no more."""
    fleet = a_fleet(editor=broken, policy=HandoffPolicy(max_attempts=most))
    failing = fleet.offer(handling=Handling(retries=3))
    worker = fleet.worker()
    while worker.work_one():
        pass

    attempts = min(most, 4)
    result = failing.result()
    assert (State.FAILED, attempts, "handoff.attempts_exhausted") == (result.state, result.attempt, result.error)
    assert "no such file" in result.reason
    assert [*range(1, attempts)] == pauses
    assert [("editor", "failed", number) for number in range(1, attempts + 1)] == fleet.states()
    fleet.lead.close()
    verify_ledger(fleet.relay.store)


def test_a_later_attempt_may_succeed(pauses: list[int]) -> None:
    """The retry is a new attempt with what the earlier one finished; then nothing is left to be retried."""
    tries: list[int] = []

    def flaky(run: LiveRun) -> str:
        tries.append(run.attempt)
        run.call(len, "once")
        if run.attempt == 1:
            raise RuntimeError("busy")
        return f"kept {len(run.earlier.finished)}"

    fleet = a_fleet(editor=flaky)
    offered = fleet.offer(handling=Handling(retries=3))
    worker = fleet.worker()

    assert [True, True, False] == [worker.work_one() for _ in range(3)]
    assert ([1, 2], [1], "kept 1") == (tries, pauses, offered.result().value)


def test_a_caller_that_waits_tries_again_as_well(pauses: list[int]) -> None:
    """The runner of the caller is run again, with the same pauses, until the attempts are used up."""
    relay = Relay(MemoryStore())
    lead = relay.start("Edit it", by="user:ana")
    result = lead.hand_off("editor", "Edit it", run=broken, handling=Handling(retries=2)).wait()

    assert (State.FAILED, 3, "handoff.attempts_exhausted") == (result.state, result.attempt, result.error)
    assert [1, 2] == pauses


def test_without_retries_a_failure_is_left_to_the_sender(pauses: list[int]) -> None:
    """Nothing is retried that nobody asked to retry, and whoever works in a block decides by himself."""
    lead = Relay(MemoryStore()).start("Edit it", by="user:ana")
    plain = lead.hand_off("editor", "Edit it", run=broken).wait()
    block = lead.hand_off("editor", "In a block", handling=Handling(retries=2))
    with pytest.raises(RuntimeError), block:
        raise RuntimeError("no such file")

    assert (State.FAILED, "runtime", State.FAILED, []) == (plain.state, plain.error, block.state(), pauses)


def test_pauses_grow_are_random_and_bounded() -> None:
    """Each is about twice the one before, none is longer than five minutes, and no two fleets are in step."""
    several = [[pause_after(attempt).total_seconds() for _ in range(50)] for attempt in (1, 2, 5, 40)]

    for longest, found in zip((1, 2, 16, 300), several, strict=True):
        assert longest / 2 <= min(found) < max(found) <= longest


@pytest.mark.parametrize("wrong", [-1, True, "3"])
def test_retries_are_a_number(wrong: object) -> None:
    """What is no number of retries is refused when it is said."""
    with pytest.raises(InvalidValueError):
        Handling(retries=wrong)  # type: ignore[arg-type]


def test_each_retry_costs_the_same() -> None:
    """The hundredth attempt reads no more than the second: attempts that left nothing are not read one by one."""
    relay = Relay(MemoryStore(), policy=HandoffPolicy(max_attempts=1000))
    handoff = relay.start("Edit it", by="user:ana").hand_off("editor", "Edit it", carrier=Carrier.WORKER)
    costs = []
    for _ in range(100):
        lease = relay.claim(holder="worker", lease_for=LONG)
        assert lease is not None

        def once(lease: object = lease) -> None:
            handoff.accept(lease=lease).fail(RuntimeError("busy"))  # type: ignore[arg-type]
            handoff.retry(by="user:ana")

        costs.append(_counted(once))

    assert costs[1] * 0.9 < costs[99] < costs[1] * 1.1


def _counted(act: Callable[[], None]) -> int:
    """Return how many calls of our own functions an act makes; those of the store in memory are not counted."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        file = frame.f_code.co_filename
        calls += event == "call" and "batonpass" in file and "memory" not in file

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls
