"""Reading an offer back: the baton as its receiver sees it, from receipts and contents alone."""

import pytest
from msgspec.structs import replace

from batonpass import Brief
from batonpass.errors import InvalidValueError
from batonpass.handoff.history.offers import GONE, read_offer, read_report
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import ContentId, HandoffId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Claim, Constraint, Decision, Exclusion, Item
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from tests.unit.handoff.places import ANA, LONG, Places, receipts


def tamper(relay: Relay, old: bytes, new: bytes) -> None:
    """Change what is stored behind everybody's back."""
    assert isinstance(relay.store, MemoryStore)
    contents = relay.store._tables.contents
    for name, stored in list(contents.items()):
        if stored.body is not None and old in stored.body:
            contents[name] = replace(stored, body=stored.body.replace(old, new))


def content(relay: Relay, kind: str, name: str) -> ContentId:
    return receipts(relay, kind)[0].content[name].id


@pytest.fixture
def in_memory() -> Relay:
    """Return a relay on a ledger that a test may tamper with; it is not verified afterwards."""
    return Relay(MemoryStore())


def test_what_another_process_reads_is_what_was_offered(places: Places) -> None:
    """The baton that is read from receipts is the one that was written."""
    here, there = places.relay(), places.relay()
    lead = here.start("begin", by=ANA, items=[Constraint("c"), Exclusion("e")])
    lead.record(Decision("d", why="w", conditions=("x",)))
    lead.attach("data.csv", b"1,2")
    with lead.hand_off("worker", "first") as child:
        child.report("done", assumptions=["a"])
    offered = lead.hand_off("editor", "make it so", brief=Brief(rationale="r"), criteria=["c"], items=[Claim("k")])

    assert offered._written_here is not None
    assert offered._written_here.baton == there.handoff(offered.id).baton()


def test_erased_words_leave_the_rest(lead: LiveRun, relay: Relay) -> None:
    """An erased task is said to be erased, an erased brief is empty, an erased item has no value and its author."""
    lead.record(Decision("secret", why="private"))
    handoff = lead.hand_off("editor", "secret", brief=Brief(rationale="secret"))
    erased = [
        content(relay, "handoff.initiated", "task"),
        content(relay, "handoff.initiated", "brief"),
        content(relay, "run.recorded", "decision.1"),
        content(relay, "run.started", "intent"),
    ]
    relay.admin.erase(erased, by=ANA, reason="private")
    baton = handoff.baton()

    assert (GONE, None, (), ()) == (baton.task, baton.brief.rationale, baton.decisions, baton.intent)
    assert [(ANA, None), ("agent:lead", None)] == [(item.by, item.value) for item in baton.items]


def test_an_erased_report_is_no_report(lead: LiveRun, relay: Relay) -> None:
    """The handoff is completed all the same, and can be looked at, learned from and continued."""
    handoff = lead.hand_off("editor", "make it so")
    with handoff as child:
        child.report("secret")
    relay.admin.erase([content(relay, "handoff.completed", "report")], by=ANA, reason="private")

    assert (State.COMPLETED, None) == (handoff.result().state, handoff.result().report)
    assert relay.start("next", by=ANA, continues=lead.id).id


@pytest.mark.parametrize("words", [b"make it so", b"it is wrong"], ids=["task", "brief"])
def test_a_task_that_was_changed_in_the_store_is_not_taken(in_memory: Relay, words: bytes) -> None:
    """Whoever edits the database does not get a worker to do something else."""
    lead = in_memory.start("begin", by=ANA)
    handoff = lead.hand_off("editor", "make it so", brief=Brief(rationale="it is wrong"), carrier=Carrier.WORKER)
    tamper(in_memory, words, b"delete all")
    lease = in_memory.claim(holder="worker", lease_for=LONG)

    with pytest.raises(InvalidValueError, match="ledger verify"):
        in_memory.handoff(handoff.id).accept(lease=lease)


def test_an_item_that_was_changed_in_the_store_is_broken_and_not_read(in_memory: Relay) -> None:
    """A decision that is not what its receipt committed to reaches nobody, and is a problem of the baton."""
    lead = in_memory.start("begin", by=ANA)
    lead.record(Decision("round half-even"))
    handoff = lead.hand_off("editor", "make it so", carrier=Carrier.WORKER)
    tamper(in_memory, b"half-even", b"half-up!!")
    lease = in_memory.claim(holder="worker", lease_for=LONG)
    child = in_memory.handoff(handoff.id).accept(lease=lease)
    assert child.baton is not None
    accepted = receipts(in_memory, "handoff.accepted")[0].body

    assert () == child.baton.decisions
    assert any(check.startswith("signal-corruption") for check in accepted.problems)  # type: ignore[union-attr]


def test_what_is_no_offer_is_not_read_as_one(lead: LiveRun, relay: Relay) -> None:
    """A handoff row that points at another receipt is refused with the way to find out more."""
    handoff = lead.hand_off("editor", "make it so").info()

    with relay.store.view() as view, pytest.raises(InvalidValueError, match="does not begin with an offer"):
        read_offer(view, replace(handoff, seq=1))


def test_there_is_no_report_before_there_is_an_attempt(lead: LiveRun, relay: Relay) -> None:
    """Nobody has worked, so nobody has said anything."""
    handoff = lead.hand_off("editor", "make it so").info()

    with relay.store.view() as view:
        assert None is read_report(view, handoff)


def test_what_humans_said_is_byte_identical_at_every_hop(relay: Relay) -> None:
    """Five hops down, the item has the id, the digest and the bytes that it had at the root."""
    said = "  Fix\u00a0it, \u202eplease\0\r\n"
    run = relay.start(said, by=ANA, items=[Constraint("never \x1b[1m")])

    def carried(child: LiveRun) -> list[Item]:
        assert child.baton is not None
        return [item for item in child.baton.items if item.part in {"intent", "constraint"}]

    seen = []
    for number in range(5):
        run = run.hand_off(f"agent-{number}", "go on").accept()
        seen.append(carried(run))

    assert [seen[0]] * 5 == seen
    assert said.encode() == relay.read(seen[-1][0].id)


def test_a_handoff_that_there_is_not_is_not_found(relay: Relay, lead: LiveRun) -> None:
    """An id that names nothing is refused when it is looked up, not when it is used."""
    wrong = HandoffId("handoff" + lead.id.removeprefix("run"))

    with pytest.raises(Exception, match="no handoff"):
        relay.handoff(wrong)
