"""Gaps in the record: where nothing can be written, a run that is only watched goes on, and says so afterwards."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batonpass.errors import CallInDoubtError, StoreError, StoreFullError, StoreUnavailableError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.call_context import current_call
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.kinds import Mode
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import Constraint, Decision
from batonpass.relay import Relay
from tests.unit.handoff.outage import Outage
from tests.unit.handoff.places import ANA, at_once, begin_only, bodies, kinds, receipts, worker


@pytest.fixture
def store() -> Outage:
    """Return a store that works, for now."""
    return Outage()


@pytest.fixture
def relay(store: Outage, tmp_path: Path) -> Iterator[Relay]:
    """Return a relay whose record is verified after every test."""
    relay = Relay(store, home=tmp_path)
    yield relay
    store.full = store.away = False
    relay.verify()
    relay.close()


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a root run that is only watched."""
    return relay.start("begin", by=ANA)


@pytest.fixture
def done() -> list[Any]:
    """Return what happened in the world: nothing."""
    return []


def test_an_observed_call_is_made_although_its_request_cannot_be_written(
    store: Outage, relay: Relay, lead: LiveRun, done: list[Any]
) -> None:
    """The agent notices nothing; the next thing that is written comes after a receipt that counts what is missing."""
    store.full = True
    for name in ("a", "b"):
        lead.call(done.append, name)
    store.full = False
    lead.call(done.append, "c")

    assert (["a", "b", "c"], [2]) == (done, [body.calls for body in bodies(relay, "run.gap")])
    assert ["run.started", "run.gap", "tool.requested", "tool.completed"] == kinds(relay)


def test_an_enforced_call_is_stopped(store: Outage, relay: Relay, done: list[Any]) -> None:
    """Who is held to a grant does nothing that is not recorded, and leaves no gap."""
    lead = relay.start("begin", by=ANA, mode=Mode.ENFORCED)
    store.full = True
    with pytest.raises(StoreFullError):
        lead.call(done.append, "a")
    store.full = False
    lead.call(done.append, "b")

    assert (["b"], []) == (done, bodies(relay, "run.gap"))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("fails", [False, True], ids=["it works", "it fails"])
def test_an_outcome_that_cannot_be_written_leaves_a_doubt(
    store: Outage, relay: Relay, mode: Mode, *, fails: bool
) -> None:
    """Watched, the agent gets what the tool returned or raised; held to a grant, it gets the store's error."""
    run = relay.start("begin", by=ANA, mode=mode).hand_off("worker", "it").accept()

    def act() -> str:
        store.full = True
        if fails:
            raise ValueError("it broke")
        return "done"

    expected: type[Exception] = StoreFullError if mode is Mode.ENFORCED else ValueError
    if fails or mode is Mode.ENFORCED:
        with pytest.raises(expected):
            run.call(act)
    else:
        assert "done" == run.call(act)
    store.full = False
    run.close()

    assert [1] * (mode is Mode.OBSERVED) == [body.calls for body in bodies(relay, "run.gap")]
    assert (1, 0) == (len(bodies(relay, "tool.requested")), len(receipts(relay, "tool.completed")))


def test_a_doubt_that_a_gap_left_is_put_before_whoever_goes_on(store: Outage, lead: LiveRun, done: list[Any]) -> None:
    """It is listed, and the call is not made a second time by itself."""
    handoff = lead.hand_off("worker", "it")
    run = handoff.accept()

    @tool("act")
    def act() -> None:
        done.append(1)
        store.full = True

    run.call(act)
    store.full = False
    run.fail(ValueError("died"))
    handoff.retry()
    again = handoff.accept()
    with pytest.raises(CallInDoubtError):
        again.call(act)

    assert ([1], ["act"]) == (done, [call.tool for call in again.earlier.in_doubt])


ACTS: dict[str, Callable[[LiveRun], object]] = {
    "a call": lambda run: run.call(len, "a"),
    "a note": lambda run: run.record(Decision("so")),
    "what the human says": lambda run: run.add_intent("wait"),
    "an artifact": lambda run: run.attach("a.txt", "a"),
    "a checkpoint": lambda run: run.checkpoint([]),
    "an offer": lambda run: run.hand_off("worker", "it"),
    "what is relaxed": lambda run: run.relax(run.notes[0], by=ANA, reason="it is fine"),
    "its end": lambda run: run.close(),
    "its failure": lambda run: run.fail(ValueError("died")),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_whatever_is_written_next_comes_after_the_gap(
    store: Outage, relay: Relay, act: Callable[[LiveRun], object]
) -> None:
    """The receipt of a gap stands where the gap is, once."""
    lead = relay.start("begin", by=ANA, items=[Constraint("be careful")])
    before = len(kinds(relay))
    store.full = True
    lead.call(len, "unrecorded")
    with pytest.raises(StoreError):
        lead.record(Decision("it cannot be kept"))
    store.full = False
    act(lead)

    assert ("run.gap", 1) == (kinds(relay)[before], kinds(relay).count("run.gap"))


def test_a_settlement_comes_after_the_gap_as_well(store: Outage, relay: Relay, lead: LiveRun) -> None:
    """Of a root run that was resumed, somebody decides about a doubt in the run itself."""
    doubt = begin_only(lead, len, "a")
    again = relay.resume(lead.id)
    store.full = True
    again.call(len, "unrecorded")
    store.full = False
    again.settle(doubt, "skip", by=ANA)

    assert ["run.gap", "run.settled"] == kinds(relay)[-2:]


def test_threads_lose_no_gap(store: Outage, relay: Relay, lead: LiveRun) -> None:
    """However many calls go unrecorded at once, the record counts every one."""
    store.full = True
    at_once(*[lambda: lead.call(len, "the same")] * 8)
    store.full = False
    lead.close()

    assert [8] == [body.calls for body in bodies(relay, "run.gap")]


def test_what_is_finished_is_not_done_again_because_the_store_is_away(
    store: Outage, relay: Relay, lead: LiveRun, done: list[Any]
) -> None:
    """Its result cannot be read: that stops the call in every mode, and so does a doubt that nobody can look up."""
    handoff = lead.hand_off("worker", "it")
    run = handoff.accept()
    run.call(done.append, "a")
    begin_only(run, done.append, "b")
    run.fail(ValueError("died"))
    handoff.retry()
    again = handoff.accept()
    store.away = True
    for name in ("a", "b"):
        with pytest.raises(StoreUnavailableError):
            again.call(done.append, name)
    again.call(done.append, "c")
    store.away = False
    again.close()

    assert (["a", "c"], [1]) == (done, [body.calls for body in bodies(relay, "run.gap")])


def test_a_doubt_stops_a_call_also_where_the_refusal_cannot_be_written(
    store: Outage, relay: Relay, lead: LiveRun, done: list[Any]
) -> None:
    """What may have happened does not happen again; that somebody tried is in the gap."""
    handoff = lead.hand_off("worker", "it")
    run = handoff.accept()
    begin_only(run, done.append, "a")
    run.fail(ValueError("died"))
    handoff.retry()
    again = handoff.accept()
    store.full = True
    with pytest.raises(CallInDoubtError):
        again.call(done.append, "a")
    store.full = False
    again.close()

    assert ([], [1]) == (done, [body.calls for body in bodies(relay, "run.gap")])


def test_an_unrecorded_call_knows_its_key(store: Outage, lead: LiveRun, tmp_path: Path) -> None:
    """A tool that passes its key on gets one, also from a worker elsewhere whose store goes away at once."""
    lead.hand_off("worker", "it", carrier=Carrier.WORKER)
    run = worker(Relay(store, home=tmp_path))
    store.away = True
    context = run.call(current_call)

    assert context is not None
    assert (run.id, 64) == (context.run, len(context.key))


def test_an_unrecorded_call_has_no_effect_in_the_record(store: Outage, relay: Relay, lead: LiveRun) -> None:
    """The close lists the effects that have a receipt; an unrecorded failure is the tool's own."""

    def broken() -> None:
        raise ValueError("it broke")

    store.full = True
    lead.call(len, "a")
    with pytest.raises(ValueError, match="it broke"):
        lead.call(broken)
    store.full = False
    lead.call(len, "b")
    lead.close()
    (requested,) = bodies(relay, "tool.requested")

    assert ((requested.call,), [2]) == (
        bodies(relay, "run.closed")[0].effects,
        [body.calls for body in bodies(relay, "run.gap")],
    )
