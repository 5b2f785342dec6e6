"""What a session says of the trees it comes from is held against what those recorded."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from batonpass.audit.bundle import export_bundle, import_bundle
from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import UnlinkedError
from batonpass.handoff.live.faces import LiveRun
from batonpass.handoff.tools.declaration import tool
from batonpass.model.base.ids import CallId, ContentId, Digest, HandoffId, ReceiptId, RunId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import Decision
from batonpass.model.bodies.body import (
    Body,
    Carried,
    ChildHead,
    Kind,
    Part,
    RunAcknowledged,
    SessionResumed,
    SessionSaved,
    ToolCached,
)
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.wire.canonical import digest
from tests.unit.handoff.calls.test_result_cache import HOUR
from tests.unit.model.examples import an_id

ANA: Final = "user:ana"
NOBODY: Final = RunId(an_id("run", 9))


@tool("pull", reads=True, cache_for=HOUR)
def pull() -> int:
    """Return what takes long."""
    return 1


@pytest.fixture
def relay() -> Relay:
    """Return a relay on a ledger in memory."""
    return Relay(MemoryStore())


@pytest.fixture
def lead(relay: Relay) -> LiveRun:
    """Return a root that decided something and has something in flight."""
    lead = relay.start("begin", by=ANA)
    lead.record(Decision("d", why="w"))
    lead.hand_off("worker", "do it", carrier=Carrier.WORKER)
    lead.call(pull)
    return lead


def say(run: LiveRun, body: Body) -> None:
    """Let a run record what no honest relay would: a store does not look at that."""
    run._desk.recording.record(run._holding.working, body)


def resumed(lead: LiveRun, relay: Relay) -> tuple[LiveRun, SessionResumed]:
    """Return a root that goes on, and what it says of where it comes from."""
    run = relay.resume_session(lead.id, by=ANA)
    with relay.store.view() as view:
        stream = view.get_stream(lead.id)  # type: ignore[arg-type]
    carried = tuple(
        Carried(item=kept.said.source.item, digest=kept.said.source.digest, part=kept.said.source.part)
        for kept in run.session.kept
        if kept.said.source
    )
    head = ChildHead(run=lead.id, seq=stream.seq, head=stream.head)
    return run, SessionResumed(run=run.id, roots=(head,), kept=carried)


def test_what_is_so_is_taken(lead: LiveRun, relay: Relay) -> None:
    """An honest session, saved, resumed and with a result that was given again, verifies."""
    lead.save_session()
    run = relay.resume_session(lead.id, by=ANA)
    run.call(pull)

    assert relay.verify().receipts


OTHER: Final = Carried(item=ContentId(an_id("content", 9)), digest=Digest("ab" * 32), part=Part.DECISION)
LIES: Final[list[Any]] = [
    pytest.param(lambda body: {"roots": (replace(body.roots[0], run=NOBODY),)}, "roots", id="a root that never was"),
    pytest.param(lambda body: {"roots": (replace(body.roots[0], head=Digest("ab" * 32)),)}, "roots", id="another head"),
    pytest.param(lambda body: {"roots": (replace(body.roots[0], seq=99),)}, "roots", id="a place that is not reached"),
    pytest.param(lambda body: {"roots": (replace(body.roots[0], run=body.run),)}, "roots", id="where itself stood"),
    pytest.param(lambda _: {"kept": (OTHER,)}, "kept", id="an item that nobody recorded"),
    pytest.param(
        lambda body: {"kept": (replace(body.kept[0], digest=Digest("ab" * 32)),)}, "kept", id="an item with other words"
    ),
    pytest.param(
        lambda body: {"kept": (replace(body.kept[0], part=Part.QUESTION),)}, "kept", id="a decision as a question"
    ),
    pytest.param(lambda _: {"revisit": (OTHER.item,)}, "revisit", id="a decision that nobody made"),
    pytest.param(
        lambda _: {"in_flight": (HandoffId(an_id("handoff", 9)),)}, "in_flight", id="what was never handed off"
    ),
]


@pytest.mark.parametrize(("change", "field"), LIES)
def test_what_a_resumed_session_makes_up_is_found(
    lead: LiveRun, relay: Relay, change: Callable[[SessionResumed], dict[str, Any]], field: str
) -> None:
    """Each thing that it says of other trees is compared with what those say."""
    run, body = resumed(lead, relay)
    say(run, replace(body, **change(body)))

    with pytest.raises(UnlinkedError) as found:
        verify_ledger(relay.store)
    assert field == found.value.field


def test_it_comes_from_a_root(lead: LiveRun, relay: Relay) -> None:
    """Not from somewhere in the middle of a tree."""
    child = lead.hand_off("worker", "another").accept()
    run, body = resumed(lead, relay)
    with relay.store.view() as view:
        stream = view.get_stream(child.id)  # type: ignore[arg-type]
    say(run, replace(body, roots=(ChildHead(run=child.id, seq=stream.seq, head=stream.head),), kept=()))

    with pytest.raises(UnlinkedError, match="is no root"):
        verify_ledger(relay.store)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"kept": (OTHER,)}, "kept", id="an item that nobody recorded"),
        pytest.param({"in_flight": (HandoffId(an_id("handoff", 9)),)}, "in_flight", id="what was never handed off"),
    ],
)
def test_what_a_saved_session_makes_up_is_found(
    lead: LiveRun, relay: Relay, change: dict[str, Any], field: str
) -> None:
    """It names what its own tree recorded, and nothing else."""
    say(lead, replace(SessionSaved(run=lead.id, saves=lead.save_session()), **change))

    with pytest.raises(UnlinkedError) as found:
        verify_ledger(relay.store)
    assert field == found.value.field


@pytest.mark.parametrize(
    ("made", "result"),
    [
        pytest.param(an_id("call", 9), None, id="a call that never was"),
        pytest.param(None, an_id("receipt", 9), id="a receipt that never was"),
    ],
)
def test_a_result_that_nobody_kept_cannot_be_given_again(
    lead: LiveRun, relay: Relay, made: str | None, result: str | None
) -> None:
    """Which call, and which receipt has its result, are compared."""
    with relay.store.view() as view:
        (cached,) = view.find_cached()
    lie = ToolCached(
        run=lead.id,
        call=CallId(an_id("call", 8)),
        tool="pull",
        made=CallId(made or cached.call),
        result=ReceiptId(result or cached.receipt),
    )
    say(lead, lie)

    with pytest.raises(UnlinkedError, match="keeps no result"):
        verify_ledger(relay.store)


def test_one_tree_of_a_session_verifies_by_itself(lead: LiveRun, relay: Relay) -> None:
    """In a bundle the trees that it comes from are not there; what it says of them is not held against it."""
    lead.save_session()
    run = relay.resume_session(lead.id, by=ANA)
    run.call(pull)
    run.save_session()
    run.close()
    lines = list(export_bundle(relay.store, run.id))

    assert 6 <= import_bundle(MemoryStore(), lines).receipts


def refuted_elsewhere(relay: Relay, lead: LiveRun) -> tuple[LiveRun, Digest]:
    """Return a root that goes on from a lead, and a verdict that refutes a result in the tree of the lead."""
    found = lead.hand_off("finder", "find it")
    with found as finder:
        finder.report("3 %", decisions=[Decision("use 3 %")])
    run = relay.resume_session(lead.id, by=ANA)
    found.refute("no", by=ANA)
    with relay.store.view() as view:
        (stored,) = view.find_receipts(ReceiptQuery(kind=Kind.VERIFICATION_FAILED))
    return run, digest(stored.payload)


def test_a_root_acknowledges_verdicts_of_the_trees_that_it_goes_on_from(lead: LiveRun, relay: Relay) -> None:
    """With what it handed off as refuted, the ledger verifies, and so does its tree in a bundle of its own."""
    run, _ = refuted_elsewhere(relay, lead)
    run.hand_off("adder", "add it up")
    run.acknowledge()
    run.close()
    lead.close()

    assert relay.verify().receipts
    assert import_bundle(MemoryStore(), list(export_bundle(relay.store, run.id))).receipts


@pytest.mark.parametrize("lie", ["a verdict of nobody", "of its own tree", "of a tree that it does not go on from"])
def test_a_verdict_that_a_root_cannot_have_been_told_is_found(lead: LiveRun, relay: Relay, lie: str) -> None:
    """It countersigns a verdict on what came along to it, and nothing else."""
    run, verdict = refuted_elsewhere(relay, lead)
    who, baton = {
        "a verdict of nobody": (run, Digest("ab" * 32)),
        "of its own tree": (lead, verdict),
        "of a tree that it does not go on from": (relay.start("another", by=ANA), verdict),
    }[lie]
    say(who, RunAcknowledged(run=who.id, revision=1, baton=baton))

    with pytest.raises(UnlinkedError, match="no verdict on a result of an earlier session"):
        verify_ledger(relay.store)
