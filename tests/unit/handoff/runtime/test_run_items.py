"""What a run writes down: items, what the human says later, artifacts, checkpoints, and what it is released from."""

import os

import pytest

from batonpass.errors import ContentErasedError, InvalidValueError, NotEntitledError, NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import ContentId
from batonpass.model.base.lifecycle import Carrier
from batonpass.model.baton.items import Artifact, Constraint, Decision, Exclusion, Statement
from batonpass.relay import Relay
from tests.unit.handoff.places import ANA, LONE_SURROGATE, LONG, Places, bodies, kinds, receipts

TEN_MEGABYTES = 10 * 1024 * 1024


def test_items_are_recorded_together(lead: LiveRun, relay: Relay) -> None:
    """Several items are one receipt, by whoever works, unless somebody else is named."""
    lead.record(Decision("a"), Decision("b"))
    lead.record(Constraint("c"), by="user:bob")

    assert [("agent:lead", 2), ("user:bob", 1)] == [
        (body.by, len(body.items)) for body in bodies(relay, "run.recorded")
    ]


@pytest.mark.parametrize("wrong", [(), ("text",), (None,), (Decision,)], ids=["nothing", "a text", "none", "a type"])
def test_only_items_are_recorded(lead: LiveRun, wrong: tuple[object, ...]) -> None:
    """What is no item of a baton is refused."""
    with pytest.raises(InvalidValueError):
        lead.record(*wrong)  # type: ignore[arg-type]


def test_a_later_statement_reaches_later_offers_and_names_running_children(lead: LiveRun, relay: Relay) -> None:
    """Running children are unchanged and reported; what is handed off from now on knows all that was said."""
    waiting = lead.hand_off("worker", "waits")
    running = lead.hand_off("worker", "runs")
    child = running.accept()
    lead.hand_off("worker", "is claimed", carrier=Carrier.WORKER)
    lease = relay.claim(holder="w", lease_for=LONG)
    assert lease is not None

    assert {running.id, lease.handoff} == set(lead.add_intent("And negative totals, too"))
    later = lead.hand_off("worker", "later").accept()
    assert child.baton is not None
    assert later.baton is not None
    assert [1, 2, 1] == [len(child.baton.intent), len(later.baton.intent), len(waiting.baton().intent)]


def test_a_statement_by_a_child_reaches_its_siblings(lead: LiveRun) -> None:
    """What humans say is known in the whole tree, whoever of it heard it."""
    child = lead.hand_off("worker", "one").accept()
    child.add_intent("stop at noon", by="user:bob")
    sibling = lead.hand_off("worker", "two").accept()
    assert sibling.baton is not None

    assert [(ANA, Statement("Fix invoice rounding")), ("user:bob", Statement("stop at noon"))] == [
        (item.by, item.value) for item in sibling.baton.items
    ]


class TestArtifacts:
    """Files and results travel by digest."""

    def test_ten_megabytes_arrive_as_they_were(self, places: Places) -> None:
        """In another process, byte for byte, while the offer's receipt stays as small as it was."""
        relay = places.relay()
        lead = relay.start("begin", by=ANA)
        lead.hand_off("worker", "without", carrier=Carrier.WORKER)
        data = os.urandom(TEN_MEGABYTES)
        lead.attach("blob.bin", data)
        handoff = lead.hand_off("worker", "with", carrier=Carrier.WORKER)
        sizes = [
            len(relay.read(ref.id))
            for receipt in receipts(relay, "handoff.initiated")
            for ref in receipt.content.values()
        ]
        there = places.relay()
        leases = [there.claim(holder="w", lease_for=LONG) for _ in range(2)]
        child = there.handoff(handoff.id).accept(lease=leases[1])

        assert data == child.read("blob.bin")
        assert 100 > max(sizes)

    def test_what_is_ours_is_not_replaced_by_what_came_from_outside(self, lead: LiveRun) -> None:
        """A worker that brings a page under the name of a file of ours does not put it in its place."""
        lead.attach("policy.md", "ours")
        with lead.hand_off("worker", "read the web") as child:
            item = child.attach("policy.md", "theirs", untrusted=True)
            child.attach("page.html", "one", untrusted=True)
            child.attach("page.html", "two", untrusted=True)
        reader = lead.hand_off("worker", "go on").accept()

        assert (b"ours", b"theirs", b"two") == (
            reader.read("policy.md"),
            reader.read(item.id),
            reader.read("page.html"),
        )

    def test_the_last_of_one_name_counts(self, lead: LiveRun) -> None:
        """A newer version of a file takes the place of the older one."""
        lead.attach("a.txt", "one")
        lead.attach("a.txt", "two")

        assert b"two" == lead.read("a.txt")

    @pytest.mark.parametrize(
        "body",
        [b"", "", bytearray(b"x"), memoryview(b"x"), "\0\u202e"],
        ids=["no bytes", "no text", "a buffer", "a view", "nasty text"],
    )
    def test_any_bytes_or_text_can_be_kept(self, lead: LiveRun, body: bytes | str) -> None:
        """Empty ones, and buffers, included."""
        lead.attach("a", body)

        assert (body.encode() if isinstance(body, str) else bytes(body)) == lead.read("a")

    @pytest.mark.parametrize(
        ("name", "body", "media_type"),
        [
            ("a", LONE_SURROGATE, None),
            ("a", 5, None),
            ("a", None, None),
            ("", b"x", None),
            (LONE_SURROGATE, b"x", None),
            ("a", b"x", "no type"),
        ],
        ids=["half a character", "a number", "nothing", "no name", "a name of half a character", "no media type"],
    )
    def test_what_cannot_be_kept_is_refused(
        self, lead: LiveRun, name: str, body: bytes, media_type: str | None
    ) -> None:
        """Nothing is recorded of it."""
        with pytest.raises(InvalidValueError):
            lead.attach(name, body, media_type=media_type)
        assert () == lead.notes

    def test_what_is_not_there_or_was_erased_is_not_read(self, lead: LiveRun, relay: Relay) -> None:
        """Each says which of the two it is."""
        item = lead.attach("a", b"x")
        assert isinstance(item.value, Artifact)
        relay.admin.erase([item.value.body], by=ANA, reason="private")

        with pytest.raises(ContentErasedError):
            lead.read("a")
        with pytest.raises(NotFoundError, match="artifact"):
            lead.read("b")


class TestRelaxing:
    """Only its author or the root's principal relaxes what binds."""

    @pytest.mark.parametrize("by", ["agent:lead", ANA])
    def test_whoever_is_entitled(self, lead: LiveRun, relay: Relay, by: str) -> None:
        """What is relaxed does not travel any more; why stands in the record."""
        (item,) = lead.record(Constraint("c"))
        lead.relax(item, by=by, reason="it is fine")
        child = lead.hand_off("worker", "go on").accept()
        assert child.baton is not None

        assert ((), by) == (child.baton.constraints, bodies(relay, "run.relaxed")[0].by)

    @pytest.mark.parametrize("by", ["agent:worker", "user:bob", "agent:ana"])
    def test_nobody_else(self, lead: LiveRun, by: str) -> None:
        """Not even whoever works under it."""
        lead.record(Exclusion("e"), by=ANA)
        child = lead.hand_off("worker", "go on").accept()
        (item,) = child.notes

        with pytest.raises(NotEntitledError, match=ANA):
            child.relax(item, by=by, reason="it is in my way")
        assert (item,) == child.notes

    def test_a_child_that_is_released_leaves_its_siblings_bound(self, lead: LiveRun) -> None:
        """It is released for this run, and for whom it hands off to."""
        (item,) = lead.record(Constraint("c"))
        child = lead.hand_off("worker", "one").accept()
        child.relax(item.id, by=ANA, reason="here only")
        grandchild = child.hand_off("worker", "below").accept()

        assert ((), (item,), (item,)) == (grandchild.notes, lead.notes, lead.hand_off("worker", "two").accept().notes)

    def test_only_what_binds_and_only_once(self, lead: LiveRun) -> None:
        """Decisions are not relaxed, nor what is not there or was relaxed before."""
        decision, constraint = lead.record(Decision("d"), Constraint("c"))
        lead.relax(constraint, by=ANA, reason="fine")

        with pytest.raises(InvalidValueError, match="only constraints and exclusions"):
            lead.relax(decision, by=ANA, reason="fine")
        with pytest.raises(NotFoundError):
            lead.relax(constraint, by=ANA, reason="again")
        with pytest.raises(NotFoundError):
            lead.relax(ContentId("content_" + "0" * 26), by=ANA, reason="nothing")


class TestCheckpoints:
    """What the next attempt needs to go on."""

    @pytest.mark.parametrize(
        "messages",
        [[{"role": "user", "content": LONE_SURROGATE}], {"a": "\0\u202e"}, [], "text", None, 10**30, [1.5]],
        ids=["half a character", "nasty text", "nothing", "a text", "none", "a large number", "a fraction"],
    )
    def test_messages_come_back_as_they_were(self, lead: LiveRun, messages: object) -> None:
        """Any JSON, and any text that a model may write."""
        handoff = lead.hand_off("worker", "think")
        child = handoff.accept()
        child.checkpoint(["older"])
        child.checkpoint(messages)
        child.fail(ValueError("died"))
        handoff.retry()

        assert messages == handoff.accept().messages()

    @pytest.mark.parametrize(
        "messages", [[object()], {1, 2}, b"\xff", b"no json"], ids=["object", "set", "bytes", "text"]
    )
    def test_what_is_no_json_is_refused_when_it_is_kept(self, lead: LiveRun, relay: Relay, messages: object) -> None:
        """Not when the next attempt needs it."""
        with pytest.raises(InvalidValueError, match="messages"):
            lead.checkpoint(messages)
        assert [] == bodies(relay, "checkpoint.saved")

    def test_there_are_none_before_the_first(self, lead: LiveRun) -> None:
        """A first attempt begins at the beginning."""
        assert None is lead.messages()

    def test_a_checkpoint_says_after_which_call_it_was(self, lead: LiveRun, relay: Relay) -> None:
        """The last call that had an outcome then."""
        lead.checkpoint([])
        lead.call(len, "a")
        lead.checkpoint([])

        assert [None, bodies(relay, "tool.requested")[0].call] == [
            body.after for body in bodies(relay, "checkpoint.saved")
        ]


@pytest.mark.filterwarnings("ignore::batonpass.errors.handoff.ReusedResultWarning")
def test_a_replayed_run_writes_nothing(lead: LiveRun, relay: Relay) -> None:
    """Going through a finished handoff again records nothing, whatever it notes."""

    def work() -> None:
        with lead.hand_off("worker", "note") as run:
            (item,) = run.record(Constraint("c"))
            run.attach("a", b"x")
            run.relax(item, by="agent:worker", reason="fine")
            run.checkpoint([1])
            run.add_intent("more")
            with run.hand_off("leaf", "below") as leaf:
                leaf.report("leaf")
            run.report("done")

    work()
    before = kinds(relay)
    work()

    assert before == kinds(relay)
