"""Starting a root run, and going on with one whose process is gone."""

from datetime import timedelta

import pytest

from batonpass.errors import FencedError, HandoffEndedError, InvalidValueError, NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import RunId
from batonpass.model.base.kinds import Mode
from batonpass.model.base.label import SourceType
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import (
    Artifact,
    Assumption,
    Claim,
    Constraint,
    Decision,
    Exclusion,
    Item,
    ItemValue,
    OpenQuestion,
    RejectedPath,
    WorkItem,
    label_of,
)
from batonpass.model.policy.handoff_policy import HandoffPolicy
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, LONE_SURROGATE, Places, bodies, kinds, receipts


def values(run: LiveRun) -> list[ItemValue | None]:
    return [item.value for item in run.notes]


def test_a_root_is_one_commit(relay: Relay) -> None:
    """The human's words, and what binds everybody, are there at once."""
    relay.start("begin", by=ANA, items=[Constraint("c"), Constraint(key="k", operator="=", value="v"), Exclusion("e")])

    assert ["run.started", "run.recorded"] == kinds(relay)


@pytest.mark.parametrize("intent", ["", "  \n\t", LONE_SURROGATE, "x" * (10 * 1024 * 1024 + 1)])
def test_an_intent_that_could_not_travel_is_refused(relay: Relay, intent: str) -> None:
    """What no child could be told is not taken as what a human wants."""
    with pytest.raises(InvalidValueError, match="intent"):
        relay.start(intent, by=ANA)

    assert [] == kinds(relay)


@pytest.mark.parametrize("by", ["ana", "", "user:", "user:ana smith", "\x1b:x", LONE_SURROGATE])
def test_somebody_has_to_want_it(relay: Relay, by: str) -> None:
    """Work is done for a principal with a kind and a name."""
    with pytest.raises(InvalidValueError):
        relay.start("begin", by=by)


class TestGoingOn:
    """A process is gone, and another goes on with its run."""

    @pytest.mark.parametrize("where", ["elsewhere", "in this very process"])
    def test_whoever_held_it_is_fenced(self, places: Places, where: str) -> None:
        """Who held it before can request nothing and deliver nothing; who took it up goes on."""
        relay = places.relay()
        old = relay.start("begin", by=ANA)
        new = (places.relay() if where == "elsewhere" else relay).resume(old.id)
        made: list[int] = []

        for act in (
            old.close,
            lambda: old.record(Decision("d")),
            lambda: old.hand_off("a", "b"),
            lambda: old.call(made.append, 1),
        ):
            with pytest.raises(FencedError, match="stop this writer"):
                act()
        new.call(made.append, 2)
        new.close()
        assert [2] == made

    def test_an_attempt_that_was_taken_up_again_in_this_process_is_fenced(self, relay: Relay) -> None:
        """What it was in the middle of is kept as evidence; only the new holder closes the handoff."""
        handoff = relay.start("begin", by=ANA).hand_off("worker", "one")
        old = handoff.accept()
        taken_up: list[LiveRun] = []
        with pytest.raises(FencedError):
            old.call(lambda: taken_up.append(relay.resume(old.id)))
        assert 1 == len(bodies(relay, "handoff.late"))
        taken_up[0].close()

        assert State.COMPLETED is handoff.state()

    def test_what_it_knew_is_known(self, places: Places) -> None:
        """Its notes, what was relaxed, its artifacts and what its children gave back are there again."""
        old = places.relay().start("begin", by=ANA, items=[Exclusion("e")])
        constraint, _ = old.record(Constraint("c"), Decision("d"))
        old.relax(constraint, by=ANA, reason="it is fine")
        old.attach("data.csv", b"1,2")
        with old.hand_off("worker", "find out") as child:
            child.record(RejectedPath("regex", "slow"))
            child.report("found", open_questions=["all of it?"], confidence=700)
        new = places.relay().resume(old.id)

        assert values(old) == values(new)
        assert b"1,2" == new.read("data.csv")

    def test_its_mode_and_session_are_those_of_its_first_receipt(self, places: Places) -> None:
        """An enforced run does not become an observed one by a crash."""
        first = places.relay()
        old = first.start("begin", by=ANA, mode=Mode.ENFORCED)
        places.relay().resume(old.id).record(Decision("d"))

        assert {Mode.ENFORCED} == {receipt.mode for receipt in receipts(first) if receipt.root == old.id}

    def test_what_it_went_on_with_unverified_is_still_said(self, places: Places) -> None:
        """A crash between a result and the next offer does not make the result a verified one."""
        first = places.relay()
        old = first.start("begin", by=ANA)
        one, two = old.hand_off("worker", "one"), old.hand_off("worker", "two")
        with one as child:
            child.report("done")
        old.hand_off("worker", "builds on one")
        with two as child:
            child.report("done")
        places.relay().resume(old.id).hand_off("worker", "builds on two")

        assert [(one.id,), (two.id,)] == [body.unverified for body in bodies(first, "handoff.initiated")[2:]]

    def test_a_policy_holds_across_a_crash(self, places: Places) -> None:
        """What a lead was not to build on before, it is not to build on afterwards."""
        strict = HandoffPolicy(verified_only=True)
        old = places.relay(policy=strict).start("begin", by=ANA)
        with old.hand_off("worker", "one") as child:
            child.report("done")

        with pytest.raises(Exception, match="nobody has verified"):
            places.relay(policy=strict).resume(old.id).close()

    def test_an_attempt_can_be_resumed_as_well(self, places: Places) -> None:
        """A child's run goes on with its baton and its notes."""
        old = places.relay().start("begin", by=ANA).hand_off("worker", "do it").accept()
        old.record(Decision("d"))
        new = places.relay().resume(old.id)
        new.report("done")
        new.close()

        assert ("do it", 1) == (new.task, new.attempt)

    def test_what_is_over_does_not_go_on(self, relay: Relay) -> None:
        """A closed run is not resumed, and one that never was is not found."""
        run = relay.start("begin", by=ANA)
        run.close()

        with pytest.raises(HandoffEndedError, match="is completed"):
            relay.resume(run.id)
        with pytest.raises(NotFoundError):
            relay.resume(RunId("run_" + "0" * 26))


class TestSessions:
    """What outlives a session, and what does not."""

    def last_time(self, relay: Relay) -> LiveRun:
        """Return a root that is over."""
        with relay.start("begin", by=ANA, series="quarterly", items=[Constraint("c"), Exclusion("e")]) as lead:
            lead.record(Decision("lead's", why="w"), Assumption("hypothesis"), RejectedPath("path"), Claim("claim"))
            lead.attach("page.html", b"<p>", untrusted=True)
            with lead.hand_off("worker", "unverified") as child:
                child.record(Constraint("the worker's own"))
                child.report("u", open_questions=["u?"], decisions=["u!"])
            verified = lead.hand_off("worker", "verified")
            with verified as child:
                child.report("v", open_questions=["v?"])
            verified.verify(verdict="right", by="user:bob")
            failed = lead.hand_off("worker", "failed")
            failed.run(lambda run: run.report("f", open_questions=["f?"], decisions=["f!"]) or 1 / 0)
            lead.report("all done", open_questions=["and now?"])
        return lead

    def expected(self, relay: Relay) -> list[tuple[str, ItemValue]]:
        """Return what is to come along, and from whom."""
        verified = str(bodies(relay, "verification.passed")[0].handoff)
        work = WorkItem(
            "verified", outputs=("v",), verified_by="user:bob", how=f"verdict, see {verified}", evidence=verified
        )
        unverified = bodies(relay, "handoff.completed")[0].handoff
        check = f'check: "unverified" (by agent:worker, {unverified}): nobody has verified it'
        return [
            (ANA, Constraint("c")),
            (ANA, Exclusion("e")),
            ("agent:lead", Decision("lead's", why="w")),
            ("agent:lead", RejectedPath("path")),
            ("agent:worker", OpenQuestion("u?")),
            ("agent:worker", Decision("u!")),
            ("agent:worker", work),
            ("agent:worker", OpenQuestion("v?")),
            ("agent:worker", OpenQuestion("f?")),
            ("agent:lead", OpenQuestion("and now?")),
            ("service:batonpass", OpenQuestion(check)),
        ]

    def told(self, run: LiveRun) -> list[tuple[str, ItemValue | None]]:
        """Return what a run knows, and from whom."""
        return [(item.by, item.value) for item in run.notes]

    def test_decisions_questions_and_verified_results_come_along(self, relay: Relay) -> None:
        """With their authors; so does what is to be checked. Hypotheses and what came from outside do not."""
        lead = self.last_time(relay)

        assert self.expected(relay) == self.told(relay.start("next", by=ANA, continues=lead.id))

    def test_a_verified_result_stays_the_words_of_its_agent(self, relay: Relay) -> None:
        """A person who verified it did not write it: it is trusted, and scanned, as what a model wrote."""
        run = relay.start("next", by=ANA, continues=self.last_time(relay).id)

        assert [(SourceType.LLM_GENERATED, "user:bob")] == [
            (label_of(item), item.value.verified_by) for item in run.notes if isinstance(item.value, WorkItem)
        ]

    def test_nothing_is_lost_or_doubled_in_a_series(self, relay: Relay) -> None:
        """Four sessions on, with the same constraint given every time, each thing is there once."""
        self.last_time(relay)
        expected = self.expected(relay)
        for _ in range(3):
            relay.start("next", by=ANA, series="quarterly", items=[Constraint("c")]).close()
        run = relay.start("last", by=ANA, series="quarterly", items=[Constraint("c")])

        assert sorted(map(repr, expected)) == sorted(map(repr, self.told(run)))

    def test_a_series_that_is_new_continues_nothing(self, relay: Relay) -> None:
        """The first of a series begins with what it is told."""
        self.last_time(relay)

        assert () == relay.start("next", by=ANA, series="monthly").notes

    def test_what_is_not_there_is_not_continued(self, relay: Relay) -> None:
        """A root that never was is an error, and nothing is started."""
        with pytest.raises(NotFoundError):
            relay.start("next", by=ANA, continues=RunId("run_" + "0" * 26))
        assert [] == bodies(relay, "run.started")

    def test_the_last_of_a_series_is_the_one_that_nobody_continues(self, places: Places) -> None:
        """A relay whose clock is a day ahead started one session; the one after it is the last all the same."""
        here = places.relay(clock=FrozenClock())
        there = places.relay(clock=FrozenClock(FrozenClock().now() + timedelta(days=1)))
        here.start("one", by=ANA, series="s").close()
        there.start("two", by=ANA, series="s").close()
        with here.start("three", by=ANA, series="s") as three:
            three.record(OpenQuestion("from three"))

        assert [OpenQuestion("from three")] == values(here.start("four", by=ANA, series="s"))


def test_an_artifact_of_ours_is_an_item_with_its_author(lead: LiveRun) -> None:
    """Who attached it stands with it."""
    item = lead.attach("a.txt", "text")

    assert isinstance(item, Item)
    assert isinstance(item.value, Artifact)
    assert ("agent:lead", "text/plain", 4) == (item.by, item.value.media_type, item.value.size)
