"""Sessions: what comes along, what is open again, what is left, and what is in flight."""

from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from batonpass.errors import AmbiguousIdError, InvalidValueError, NotFoundError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import SessionId
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.model.baton.items import Assumption, Constraint, Decision, OpenQuestion
from batonpass.model.baton.session import NO_SESSION, revisit_mark
from batonpass.model.bodies.body import SessionSaved
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.lasting import FOUR, THREE, decided, reasons, values
from tests.unit.handoff.places import ANA, Places, bodies, receipts, worker


class TestResuming:
    """Going on where a session stopped."""

    def test_nothing_came_along_to_a_root_that_begins_anew(self, lead: LiveRun) -> None:
        """It has inherited nothing, and says so."""
        assert NO_SESSION == lead.session

    def test_the_threshold_that_was_agreed_comes_along(self, relay: Relay) -> None:
        """With whoever set it, and the time at which they did."""
        lead = decided(relay)
        session = lead.save_session()
        lead.close()
        run = relay.resume_session(session, by="user:bob", intent="go on")

        assert [(ANA, THREE)] == [(item.by, item.value) for item in run.notes if item.part == "constraint"]
        assert [item.at for item in lead.notes] == [item.at for item in run.notes]

    def test_the_new_root_says_where_it_comes_from(self, relay: Relay) -> None:
        """The receipt names session, root, what was kept by item and digest, and how much it is."""
        lead = decided(relay)
        session = lead.save_session()
        run = relay.resume_session(session, by=ANA)
        (body,) = bodies(relay, "session.resumed")

        assert (run.id, session, [lead.id]) == (body.run, body.resumes, [root.run for root in body.roots])
        assert [(item.id, item.digest) for item in lead.notes] == [(kept.item, kept.digest) for kept in body.kept]
        assert (run.session.bytes, run.session.oldest) == (body.bytes, body.oldest)

    def test_every_receipt_of_the_new_root_names_the_session(self, relay: Relay) -> None:
        """The session of a root that nobody gave one is the root's own, under the same characters."""
        lead = decided(relay)
        session = lead.save_session()
        run = relay.resume_session(session, by=ANA)
        run.hand_off("worker", "something").run(lambda _: "done")
        run.close()

        assert session.partition("_")[2] == lead.id.partition("_")[2]
        assert {session} == {receipt.session for receipt in receipts(relay) if receipt.root == run.id}

    def test_words_and_agent_are_as_they_were_unless_told(self, relay: Relay) -> None:
        """A session goes on with what was wanted, by whoever led it."""
        with relay.start("Find anomalies", by=ANA, agent="analyst") as lead:
            session = lead.save_session()
        again = relay.resume_session(session, by="user:bob")
        other = relay.resume_session(session, by="user:bob", intent="Explain them", agent="writer")
        said = [relay.read(receipt.content["intent"].id).decode() for receipt in receipts(relay, "run.started")]

        assert ["Find anomalies", "Find anomalies", "Explain them"] == said
        assert (("analyst", "user:bob"), "writer") == ((again.agent, again.principal), other.agent)

    def test_words_that_were_erased_have_to_be_said(self, relay: Relay) -> None:
        """Nobody goes on with an intent that is gone."""
        lead = decided(relay)
        relay.admin.erase([receipts(relay, "run.started")[0].content["intent"].id], by=ANA, reason="asked to")

        with pytest.raises(InvalidValueError, match="was erased"):
            relay.resume_session(lead.id, by=ANA)
        assert relay.resume_session(lead.id, by=ANA, intent="once more").id

    def test_a_root_that_died_without_saving_can_be_resumed(self, places: Places) -> None:
        """What comes along is derived from receipts; saving only marks a point."""
        lead = decided(places.relay())
        run = places.relay().resume_session(by=ANA)

        assert [lead.id] == list(run.session.roots)
        assert values(lead) == values(run)

    def test_what_a_root_writes_after_it_was_continued_is_not_lost(self, places: Places) -> None:
        """Two processes hold two roots of one session; the third knows what both of them found open, each once."""
        first = decided(places.relay())
        second = places.relay().resume_session(first.id, by=ANA)
        first.record(OpenQuestion("from the first"))
        second.record(OpenQuestion("from the second"))
        third = places.relay().resume_session(first.id, by=ANA)

        assert (first.id, second.id) == third.session.roots
        questions = [value for value in values(third) if isinstance(value, OpenQuestion)]
        assert [OpenQuestion("from the first"), OpenQuestion("from the second")] == questions
        assert 1 == values(third).count(THREE)

    def test_of_a_root_that_wrote_on_only_what_is_new_is_read(self, places: Places) -> None:
        """A threshold that was said anew in between does not come back in its old form."""
        first = decided(places.relay())
        second = places.relay().resume_session(first.id, by=ANA, items=[FOUR])
        first.close()
        second.close()
        third = places.relay().resume_session(first.id, by=ANA)

        assert [FOUR] == [value for value in values(third) if isinstance(value, Constraint)]

    def test_a_root_that_was_taken_up_again_knows_what_it_began_with(self, places: Places) -> None:
        """A resumed session whose process died is resumed as a run, and is not amnesic either."""
        lead = decided(places.relay(), "until 2020-01-01")
        again = places.relay().resume_session(lead.id, by=ANA)
        taken_up = places.relay().resume(again.id)

        assert [("it was good until 2020-01-01",)] == reasons(taken_up.session)

    def test_roots_side_by_side_are_one_session(self, relay: Relay) -> None:
        """A caller's session over two roots that do not continue each other is resumed as one."""
        session = SessionId("session_" + "0" * 26)
        one, other = (relay.start(name, by=ANA, session=session) for name in ("one", "other"))
        one.record(OpenQuestion("from one"))
        other.record(OpenQuestion("from the other"))
        run = relay.resume_session(session, by=ANA)

        assert ((one.id, other.id), 2) == (run.session.roots, len(run.notes))

    @pytest.mark.parametrize("given", ["nothing-like-it", "", "session_" + "7" * 26])
    def test_what_is_not_there_is_not_resumed(self, relay: Relay, given: str) -> None:
        """A session that never was is an error, and nothing is started."""
        decided(relay)

        with pytest.raises(NotFoundError, match="session"):
            relay.resume_session(given, by=ANA)
        assert 1 == len(bodies(relay, "run.started"))

    def test_an_ending_that_two_sessions_have_is_refused(self, relay: Relay) -> None:
        """And both are named."""
        for number in "12":
            relay.start(f"root {number}", by=ANA, session=SessionId("session_" + number * 22 + "zzzz"))

        with pytest.raises(AmbiguousIdError, match="root 1"):
            relay.resume_session("zzzz", by=ANA)

    def test_a_series_is_named_by_its_name(self, relay: Relay) -> None:
        """The last of it is resumed, and the next one is of that series too."""
        relay.start("one", by=ANA, series="quarterly").close()
        two = relay.start("two", by=ANA, series="quarterly")
        run = relay.resume_session("quarterly", by=ANA)

        assert (two.id,) == run.session.roots
        assert ["quarterly"] * 3 == [body.series for body in bodies(relay, "run.started")]


class TestInFlight:
    """What was handed off and is not over is not forgotten."""

    def offered(self, places: Places) -> tuple[LiveRun, str]:
        """Return a root that died while a worker's handoff was waiting."""
        lead = places.relay().start("begin", by=ANA)
        return lead, lead.hand_off("worker", "do it", carrier=Carrier.WORKER).id

    def test_it_is_listed(self, places: Places) -> None:
        """To whom, what for, and how it stands."""
        lead, handoff = self.offered(places)
        run = places.relay().resume_session(lead.id, by=ANA)

        (child,) = run.session.in_flight
        found = (child.handoff, child.to, child.task, child.state, child.root)
        assert (handoff, "worker", "do it", State.READY, lead.id) == found

    def test_it_is_listed_until_it_is_over_however_many_sessions_later(self, places: Places) -> None:
        """The tree that it belongs to is two sessions back, and its result comes along when there is one."""
        lead, handoff = self.offered(places)
        second = places.relay().resume_session(lead.id, by=ANA)
        third = places.relay().resume_session(lead.id, by=ANA)
        child = worker(places.relay())
        child.record(Decision("on the way", why="w"))
        child.report("done", open_questions=["from the child?"])
        child.close()
        fourth = places.relay().resume_session(lead.id, by=ANA)

        waiting = [[child.handoff for child in run.session.in_flight] for run in (second, third, fourth)]
        assert [[handoff], [handoff], []] == waiting
        (check,) = fourth.session.checks
        assert {OpenQuestion("from the child?"), Decision("on the way", "w"), check.question} == set(values(fourth))
        fourth.save_session()


class TestSaving:
    """Marking a point of a session."""

    def test_it_says_what_would_come_along(self, relay: Relay) -> None:
        """Items by id and digest, what is open again, how much is left, what is in flight."""
        lead = decided(relay, "until 2020-01-01")
        (question,) = lead.record(OpenQuestion("q"))
        lead.record(Assumption("a"))
        handoff = lead.hand_off("worker", "do it", carrier=Carrier.WORKER)
        session = lead.save_session()
        (body,) = bodies(relay, "session.saved")

        constraint, decision, *_ = lead.notes
        expected = SessionSaved(
            run=lead.id,
            saves=session,
            kept=tuple(ref for ref in body.kept if ref.item in {constraint.id, question.id}),
            revisit=(decision.id,),
            dropped=1,
            in_flight=(handoff.id,),
        )
        assert (expected, 2) == (body, len(body.kept))

    def test_it_can_be_done_again_and_closes_nothing(self, relay: Relay) -> None:
        """The run goes on, and what it writes later comes along as well."""
        lead = decided(relay)
        one = lead.save_session()
        lead.record(OpenQuestion("later"))
        other = lead.save_session()
        run = relay.resume_session(one, by=ANA)

        assert (one, True) == (other, OpenQuestion("later") in values(run))

    def test_a_child_saves_nothing(self, lead: LiveRun) -> None:
        """A session is saved where it began."""
        child = lead.hand_off("worker", "do it").accept()

        with pytest.raises(InvalidValueError, match="is no root"):
            child.save_session()


class TestSize:
    """How much is inherited, and how old it is."""

    def test_age_counts_from_when_it_was_first_said(self, relay: Relay) -> None:
        """However often it came along since."""
        clock = FrozenClock()
        relay._clock = clock
        run = decided(relay)
        for _ in range(3):
            clock.tick(timedelta(days=14))
            run = relay.resume_session("last", by=ANA)

        assert (timedelta(days=42), 2) == (run.session.age, run.session.items)

    def test_a_clock_that_went_back_makes_nothing_younger_than_new(self, relay: Relay) -> None:
        """Said tomorrow, as it looks now: it is not minus a day old."""
        clock = FrozenClock()
        relay._clock = clock
        decided(relay)
        clock.tick(timedelta(days=-1))

        assert timedelta(0) == relay.resume_session("last", by=ANA).session.age

    def test_nothing_has_no_age(self) -> None:
        """Of nothing, nothing is the oldest."""
        assert (None, timedelta(0), 0) == (NO_SESSION.oldest, NO_SESSION.age, NO_SESSION.items)


def test_no_decision_becomes_the_question_of_another() -> None:
    """One that begins like another has a question of its own."""
    marks = [revisit_mark(what) for what in ("a", 'a"', 'a": b', "a b", "a\nb")]

    assert [mark for mark in marks for other in marks if mark is not other and other.startswith(mark)] == []


class TestTampering:
    """What somebody changed in the store does not come along as if it had been recorded so."""

    @pytest.fixture
    def places(self, tmp_path: Path) -> Places:
        """Return a ledger in memory, where rows are easily changed; it is not verified afterwards."""
        return Places("memory:", tmp_path / "home")

    def test_a_report_that_was_changed_says_nothing(self, relay: Relay) -> None:
        """Its words are not what its receipt committed to."""
        lead = relay.start("begin", by=ANA)
        with lead.hand_off("worker", "do it") as child:
            child.report("done", open_questions=["really?"])
        ref = receipts(relay, "handoff.completed")[0].content["report"].id
        contents = relay.store._tables.contents  # type: ignore[attr-defined]
        contents[ref] = replace(contents[ref], body=contents[ref].body.replace(b"really?", b"no doubt"))

        resumed = relay.resume_session(lead.id, by=ANA)
        assert [one.question for one in resumed.session.checks] == [item.value for item in resumed.notes]

    @pytest.mark.parametrize("kind", ["handoff.initiated", "verification.passed"])
    def test_a_receipt_that_is_gone_is_named(self, relay: Relay, kind: str) -> None:
        """The ledger is to be verified, not guessed at."""
        lead = relay.start("begin", by=ANA)
        handoff = lead.hand_off("worker", "do it")
        with handoff as child:
            child.report("done")
        handoff.verify(verdict="right", by="user:bob")
        rows = relay.store._tables.receipts  # type: ignore[attr-defined]
        rows[:] = [row for row in rows if row.kind != kind]

        with pytest.raises(InvalidValueError, match="run `batonpass ledger verify`"):
            relay.resume_session(lead.id, by=ANA)
