"""What one session leaves undone does not get lost on the way to the next, and does not pile up either."""

from datetime import timedelta

import pytest

from batonpass import Brief, Constraint, Decision, Handling, RejectedPath, Relay, Run, WorkItem, tool
from batonpass.errors import InvalidValueError, NotFoundError, NotPersonError, TaskInFlightError
from batonpass.errors.handoff import TaskInFlightWarning
from batonpass.model.base.kinds import Mode
from batonpass.model.baton.items import ItemValue, OpenQuestion
from batonpass.model.baton.session import Fate
from batonpass.testing import FrozenClock
from tests.unit.handoff.places import ANA, Places, bodies, receipts, words

write = tool("write", target="path")(lambda path: path)


def values(run: Run) -> list[ItemValue | None]:
    """Return what a run begins with."""
    return [item.value for item in run.notes]


def session(relay: Relay, number: int, **more: object) -> Run:
    """Begin the next session of a series."""
    return relay.start(f"session {number}", by=ANA, series="nightly", **more)  # type: ignore[arg-type]


class TestChecks:
    """What nobody has verified stays to be checked."""

    def left(self, relay: Relay) -> tuple[Run, str]:
        """Let a worker touch one of two targets, claim a file, and deliver."""
        with session(relay, 1) as lead:
            handoff = lead.hand_off("worker", "Update the dashboards", brief=Brief(expects=["a.json", "b.json"]))
            with handoff as worker:
                worker.call(write, "a.json")
                worker.report("done", completed=[WorkItem("both", outputs=("a.json", "b.json"))])
        return lead, handoff.id

    def test_it_comes_along_with_its_targets(self, relay: Relay) -> None:
        """As an open question that names the handoff, what was not touched, and what no record accounts for."""
        _, handoff = self.left(relay)
        run = session(relay, 2)

        (check,) = run.session.checks
        assert (handoff, ("b.json",), ("b.json",)) == (check.handoff, check.untouched, check.unrecorded)
        said = (
            f'check: "Update the dashboards" (by agent:worker, {handoff}): nobody has verified it; untouched: b.json; '
            "without a recorded effect: b.json; output: a.json, b.json"
        )
        assert [OpenQuestion(said)] == values(run)

    def test_it_stays_until_somebody_verifies_it(self, places: Places) -> None:
        """However many sessions later; then it is gone, and the work counts as verified only where it was done."""
        relay = places.relay()
        _, handoff = self.left(relay)
        for number in (2, 3, 4):
            with session(relay, number) as lead:
                assert [handoff] == [check.handoff for check in lead.session.checks]
                assert 1 == len(lead.notes)
        places.relay().handoff(handoff).verify(by=ANA, verdict="looked at both")

        run = session(relay, 5)
        assert ((), ()) == (run.session.checks, run.notes)
        assert [Fate.ANSWERED] == [one.why for one in run.session.dropped]

    @pytest.mark.parametrize("how", ["waived", "refuted", "decided"])
    def test_whoever_looks_at_it_settles_it(self, relay: Relay, how: str) -> None:
        """A waiver with a reason, a refutation, or a decision in the words of the question."""
        _, handoff = self.left(relay)
        with session(relay, 2) as lead:
            if how == "waived":
                relay.handoff(handoff).accept_unverified("nobody reads b", by=ANA)
            elif how == "refuted":
                relay.handoff(handoff).refute("b is as it was", by=ANA)
            else:
                lead.record(Decision(lead.session.checks[0].question.text, why="b is gone"))

        assert () == session(relay, 3).session.checks

    def test_the_word_of_its_producer_settles_nothing(self, relay: Relay) -> None:
        """It verified itself."""
        _, handoff = self.left(relay)
        relay.handoff(handoff).verify(by="agent:worker", verdict="I am sure")

        assert [handoff] == [check.handoff for check in session(relay, 2).session.checks]

    def test_of_the_same_task_the_latest_is_to_be_checked(self, relay: Relay) -> None:
        """Twenty-five nights of the same work leave one check, not twenty-five."""
        for number in range(25):
            with session(relay, number) as lead, lead.hand_off("worker", "Back it up") as worker:
                worker.report("done")
        run = session(relay, 25)

        assert (1, 1) == (len(run.session.checks), len(run.notes))
        last = bodies(relay, "handoff.completed")[-1].handoff
        assert last == run.session.checks[0].handoff

    def test_work_that_a_root_recorded_or_reported_is_to_be_checked_too(self, relay: Relay) -> None:
        """It has no handoff, so a verified record of the same work or a decision settles it."""
        with session(relay, 1) as lead:
            lead.record(WorkItem("migrated the table", outputs=("orders.sql",)))
            lead.report("done", completed=["mailed Bo"])
        with session(relay, 2) as lead:
            assert ["migrated the table", "mailed Bo"] == [check.what for check in lead.session.checks]
            lead.record(WorkItem("migrated the table", verified_by=ANA, how="counted the rows"))
        with session(relay, 3) as lead:
            (check,) = [one for one in values(lead) if isinstance(one, OpenQuestion)]
            assert 'check: "mailed Bo" (by agent:lead): nobody has verified it' == check.text
            lead.record(Decision(check.text, why="she answered"))
        assert not [one for one in values(session(relay, 4)) if isinstance(one, OpenQuestion)]


def test_rejected_paths_survive_the_boundary(relay: Relay) -> None:
    """Noted or reported; until somebody decides for one of them."""
    with session(relay, 1) as lead:
        lead.record(RejectedPath("parse the PDF", why="it is a scan"))
        with lead.hand_off("worker", "Try") as worker:
            worker.report("no", rejected_paths=[RejectedPath("ask the old API", why="gone in May")])
    with session(relay, 2) as lead:
        found = [one for one in values(lead) if isinstance(one, RejectedPath)]
        assert {("parse the PDF", "it is a scan"), ("ask the old API", "gone in May")} == {
            (one.what, one.why) for one in found
        }
        lead.record(Decision("parse the PDF", why="there is text in it now"))

    kept = [one.what for one in values(session(relay, 3)) if isinstance(one, RejectedPath)]
    assert ["ask the old API"] == kept


def test_opposite_decisions_of_a_series_are_shown(places: Places) -> None:
    """The newest first, with who decided."""
    clock = FrozenClock()
    relay = places.relay(clock=clock)
    with session(relay, 1) as lead:
        lead.record(Decision("flag what is beyond 3 sigma", why="Ana agreed"))
    clock.tick(timedelta(days=7))
    with session(relay, 2) as lead, lead.hand_off("analyst", "Look") as analyst:
        analyst.record(Decision("flag what is beyond 5 sigma"))
    (one,) = session(relay, 3).session.contradictions

    assert [("flag what is beyond 5 sigma", "agent:analyst"), ("flag what is beyond 3 sigma", "agent:lead")] == [
        (side.words, side.by) for side in one.sides
    ]


class TestInFlight:
    """A task that an earlier session has handed off is recognised when the next one hands it off again."""

    def test_an_observed_run_is_warned(self, relay: Relay) -> None:
        """The offer is made, and says what it repeats."""
        first = session(relay, 1).hand_off("worker", "Count the north", carrier="worker")
        run = session(relay, 2)
        with pytest.warns(TaskInFlightWarning, match=rf"worker has exactly this task .*{first.id} is ready"):
            run.hand_off("worker", "Count the north")
        run.hand_off("worker", "Count the south")
        run.hand_off("worker", "Count the north", handling=Handling(again=1))

        offer = receipts(relay, "handoff.initiated")[1]
        assert "would_deny.in_flight" in offer.body.flags  # type: ignore[union-attr]
        assert first.id in words(relay, offer, "reason")

    def test_an_enforced_run_is_refused(self, relay: Relay) -> None:
        """Nothing is handed off, and the refusal is recorded."""
        first = session(relay, 1).hand_off("worker", "Count the north", carrier="worker")
        run = session(relay, 2, mode=Mode.ENFORCED)
        with pytest.raises(TaskInFlightError, match=first.id):
            run.hand_off("worker", "Count the north")

        assert [("handoff.in_flight", 0)] == [(body.error, body.attempt) for body in bodies(relay, "handoff.failed")]

    def test_what_has_ended_meanwhile_is_not_in_flight(self, relay: Relay) -> None:
        """It may be handed off again."""
        first = session(relay, 1).hand_off("worker", "Count the north", carrier="worker")
        run = session(relay, 2)
        first.cancel(by=ANA, reason="closed")

        assert first.id != run.hand_off("worker", "Count the north").id


class TestSize:
    """What is inherited is bounded by people, who are warned in time."""

    def grown(self, relay: Relay, count: int) -> Run:
        """Leave this many decisions."""
        with session(relay, 1, items=[Constraint("never guess")]) as lead:
            lead.record(*(Decision(f"decision {number:02}") for number in range(count)))
        return lead

    def test_many_items_and_old_ones_warn(self, places: Places) -> None:
        """Nothing while there are few of them, and they are young."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        self.grown(relay, 10)
        assert () == session(relay, 2).session.warnings
        clock.tick(timedelta(days=100))
        assert ("the oldest item is 100 days old, more than 90",) == session(relay, 3).session.warnings
        with session(relay, 4) as lead:
            lead.record(*(Decision(f"further {number}") for number in range(50)))
        assert "61 items come along, more than 50" in session(relay, 5).session.warnings

    def test_a_person_takes_out_what_nobody_needs(self, relay: Relay) -> None:
        """By its words or its id. It does not come back in later sessions, and stays in the record."""
        lead = self.grown(relay, 3)
        item = next(one for one in lead.notes if one.value == Decision("decision 02"))
        relay.prune_session("nightly", ["decision 00", item.id[-8:]], by=ANA, reason="done")

        for number in (2, 3):
            with session(relay, number) as run:
                assert [Constraint("never guess"), Decision("decision 01")] == values(run)
        (pruned,) = receipts(relay, "session.pruned")
        assert (lead.id, ANA, 2) == (pruned.body.root, pruned.body.by, pruned.body.count)  # type: ignore[union-attr]
        assert "done" == words(relay, pruned, "reason")

    def test_what_is_said_again_counts_again(self, places: Places) -> None:
        """Pruning is about what was said until then."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        self.grown(relay, 1)
        relay.prune_session("nightly", ["decision 00"], by=ANA, reason="done")
        clock.tick()
        with session(relay, 2) as lead:
            lead.record(Decision("decision 00"))

        assert Decision("decision 00") in values(session(relay, 3))

    def test_old_things_are_taken_out_by_their_age(self, places: Places) -> None:
        """Not what binds everybody: that is relaxed, or named."""
        clock = FrozenClock()
        relay = places.relay(clock=clock)
        self.grown(relay, 5)
        clock.tick(timedelta(days=100))
        with session(relay, 2) as lead:
            lead.record(Decision("young"))
        relay.prune_session("nightly", by=ANA, reason="old", older_than="90d")

        assert [Constraint("never guess"), Decision("young")] == values(session(relay, 3))

    def test_a_check_can_be_taken_out(self, relay: Relay) -> None:
        """By whoever answers for it."""
        with session(relay, 1) as lead, lead.hand_off("worker", "Back it up") as worker:
            worker.report("done")
        relay.prune_session("nightly", ['check: "Back'], by=ANA, reason="it was a test")
        run = session(relay, 2)

        assert ((), [Fate.PRUNED]) == (run.session.checks, [one.why for one in run.session.dropped])

    def test_only_a_person_takes_something_out(self, relay: Relay) -> None:
        """And only what is there."""
        self.grown(relay, 1)
        with pytest.raises(NotPersonError, match="agent:lead may not prune session_"):
            relay.prune_session("nightly", ["decision 00"], by="agent:lead", reason="I forget")
        with pytest.raises(NotFoundError):
            relay.prune_session("nightly", ["nothing like this"], by=ANA, reason="r")
        with pytest.raises(InvalidValueError):
            relay.prune_session("nightly", ["de"], by=ANA, reason="r")
        with pytest.raises(InvalidValueError):
            relay.prune_session("nightly", by=ANA, reason="r", older_than="90d")

        assert [] == receipts(relay, "session.pruned")
