"""Sessions: which decisions still hold, which are open again, and what is left behind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from batonpass import Brief
from batonpass.errors import InvalidValueError
from batonpass.model.baton.items import (
    Artifact,
    Assumption,
    Claim,
    Constraint,
    Decision,
    OpenQuestion,
    WorkItem,
)
from batonpass.model.baton.session import ASKING, Fate
from batonpass.model.bodies.body import Part
from batonpass.relay import Relay
from batonpass.testing import FrozenClock
from tests.unit.handoff.lasting import FOUR, NEW, OLD, THREE, decided, digest, reasons, values
from tests.unit.handoff.places import ANA, bodies


class TestConditions:
    """Decisions hang on conditions; those that no longer hold come back."""

    def test_a_decision_that_holds_is_kept(self, relay: Relay) -> None:
        """With its reason and its conditions."""
        run = relay.resume_session(decided(relay, "constraint:threshold <= 3").id, by=ANA)

        assert Decision("use the old rates", "they were agreed", ("constraint:threshold <= 3",)) in values(run)
        assert () == run.session.revisit

    def test_a_decision_that_no_longer_holds_is_a_question(self, relay: Relay) -> None:
        """Nobody it is handed to can take it for decided; what it was, why, and why not any more stand there."""
        lead = decided(relay, "constraint:threshold <= 3")
        run = relay.resume_session(lead.id, by=ANA, items=[FOUR])
        child = run.hand_off("worker", "go on").accept()
        text = (
            "revisit: \"use the old rates\": 'threshold' is '4' now, not <= '3' "
            "(it was decided because: they were agreed)"
        )

        assert ([], [OpenQuestion(text)]) == (list(child.baton.decisions), list(child.baton.open_questions))
        assert [(ASKING, OpenQuestion(text))] == [(item.by, item.value) for item in child.baton.of(Part.QUESTION)]
        assert bodies(relay, "session.resumed")[0].revisit == (lead.notes[-1].id,)

    def test_it_comes_back_once_however_often_the_session_is_resumed(self, relay: Relay) -> None:
        """The question is carried on; the decision is not found again behind it."""
        run = decided(relay, "until 2020-01-01")
        for _ in range(3):
            run.close()
            run = relay.resume_session("last", by=ANA)

        assert [THREE, OpenQuestion] == [values(run)[0], type(values(run)[1])]
        assert 2 == len(run.notes)

    def test_deciding_it_again_answers_it(self, relay: Relay) -> None:
        """The latest decision about the same thing counts, and the question is answered."""
        clock = FrozenClock()
        relay._clock = clock
        run = relay.resume_session(decided(relay, "until 2020-01-01").id, by=ANA)
        clock.tick()
        again = Decision("use the old rates", why="agreed once more", conditions=("until 2099-01-01",))
        run.record(again)
        run.close()
        later = relay.resume_session("last", by=ANA)

        assert [THREE, again] == values(later)
        assert [Fate.ANSWERED] == [one.why for one in later.session.dropped if one.why is Fate.ANSWERED]

    def test_a_question_is_answered_by_deciding_it_in_its_own_words(self, relay: Relay) -> None:
        """Until somebody does, it is asked in every session."""
        clock = FrozenClock()
        relay._clock = clock
        lead = relay.start("begin", by=ANA)
        lead.record(OpenQuestion("negative totals?"), OpenQuestion("and zero?"))
        clock.tick()
        lead.record(Decision("negative totals?", why="rejected at the door"))
        run = relay.resume_session(lead.id, by=ANA)

        assert {OpenQuestion("and zero?"), Decision("negative totals?", "rejected at the door")} == set(values(run))

    def test_a_question_asked_again_after_its_answer_is_open(self, relay: Relay) -> None:
        """An answer is an answer to what was asked before it."""
        clock = FrozenClock()
        relay._clock = clock
        lead = relay.start("begin", by=ANA)
        lead.record(Decision("q", why="once"))
        clock.tick()
        lead.record(OpenQuestion("q"))

        assert [Decision("q", "once"), OpenQuestion("q")] == values(relay.resume_session(lead.id, by=ANA))

    def test_of_two_decisions_about_one_thing_the_later_counts(self, relay: Relay) -> None:
        """Whoever decided first, and wherever in the tree."""
        clock = FrozenClock()
        relay._clock = clock
        lead = relay.start("begin", by=ANA)
        with lead.hand_off("worker", "decide") as child:
            child.record(Decision("rates", why="the worker's"))
        clock.tick()
        lead.record(Decision("rates", why="the lead's"))
        run = relay.resume_session(lead.id, by=ANA)

        assert [Decision("rates", "the lead's")] == [one for one in values(run) if isinstance(one, Decision)]
        assert [Fate.REPLACED] == [one.why for one in run.session.dropped if one.what == "rates"]

    def test_prose_is_kept_and_said_to_be_unchecked(self, relay: Relay) -> None:
        """Nobody can check it, and nobody pretends to."""
        run = relay.resume_session(decided(relay, "as long as Ana is happy").id, by=ANA)

        assert [("as long as Ana is happy",)] == [kept.unchecked for kept in run.session.kept if kept.unchecked]

    def test_recording_a_condition_that_cannot_be_read_breaks_nothing(self, relay: Relay) -> None:
        """It is reported where it matters: the decision is open again when the session is resumed."""
        run = relay.resume_session(decided(relay, "artifact:rates sha256:abc").id, by=ANA)

        assert [("'artifact:rates sha256:abc' is not artifact:NAME sha256:HEX",)] == reasons(run.session)

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            pytest.param(lambda: True, [], id="yes"),
            pytest.param(lambda: False, [("check 'rates' says no",)], id="no"),
            pytest.param(lambda: "they rose", [("check 'rates' says no: they rose",)], id="why not"),
            pytest.param(
                lambda: 1 / 0,
                [("check 'rates' failed: ZeroDivisionError: division by zero",)],
                id="a check that raises is never a silent yes",
            ),
            pytest.param(
                lambda: None,
                [("check 'rates' failed: it returned None, neither True nor False nor why not",)],
                id="a check that forgot to answer",
            ),
        ],
    )
    def test_a_registered_check_decides(
        self, relay: Relay, answer: Callable[[], object], expected: list[tuple[str, ...]]
    ) -> None:
        """It is asked when the session is resumed, not when it is saved."""
        asked: list[object] = []

        def check() -> object:
            asked.append(None)
            return answer()

        relay.check("rates", check)
        lead = decided(relay, "check:rates")
        lead.save_session()
        before = len(asked)
        run = relay.resume_session(lead.id, by=ANA)

        assert (0, 1, expected) == (before, len(asked), reasons(run.session))

    def test_a_check_may_be_a_coroutine_function(self, relay: Relay) -> None:
        """It is awaited, as a runner is."""

        async def rates() -> str:
            return "they rose"

        relay.check("rates", rates)

        run = relay.resume_session(decided(relay, "check:rates").id, by=ANA)
        assert [("check 'rates' says no: they rose",)] == reasons(run.session)

    def test_a_check_that_nobody_registered_is_not_a_yes(self, relay: Relay) -> None:
        """The decision is open again, and it is said which check is missing."""
        run = relay.resume_session(decided(relay, "check:rates").id, by=ANA)

        assert [("no check 'rates' is registered here",)] == reasons(run.session)

    def test_a_name_that_is_no_code_is_refused(self, relay: Relay) -> None:
        """A condition could not name it."""
        with pytest.raises(InvalidValueError, match="check"):
            relay.check("Rates unchanged", lambda: True)

    def test_the_digest_of_an_artifact_is_compared_with_the_latest_of_that_name(self, relay: Relay) -> None:
        """And the artifact comes along, so that it can be compared the next time as well."""
        clock = FrozenClock()
        relay._clock = clock
        run = decided(relay, f"artifact:rates.csv sha256:{digest(OLD)}")
        run.attach("rates.csv", OLD)
        run.attach("rates.csv", NEW, untrusted=True)  # what came from outside does not take its place
        found = []
        for _ in range(2):
            run.close()
            run = relay.resume_session("last", by=ANA)
            found.append(reasons(run.session))
        assert OLD.encode() == run.read("rates.csv")
        clock.tick()
        run.attach("rates.csv", NEW)
        run.close()
        found.append(reasons(relay.resume_session("last", by=ANA).session))

        assert [[], [], [("artifact 'rates.csv' has changed since",)]] == found

    def test_an_artifact_that_only_came_from_outside_proves_nothing(self, relay: Relay) -> None:
        """It is to be fetched anew, and the decision made anew."""
        lead = decided(relay, f"artifact:rates.csv sha256:{digest(OLD)}")
        lead.attach("rates.csv", OLD, untrusted=True)

        run = relay.resume_session(lead.id, by=ANA)
        assert [("artifact 'rates.csv' came from outside: fetch it anew",)] == reasons(run.session)

    def test_a_file_of_the_work_tree_is_looked_at(
        self, relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As it is when the session is resumed."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "rates.csv").write_text(OLD)
        lead = decided(relay, f"file:rates.csv sha256:{digest(OLD)}")
        before = reasons(relay.resume_session(lead.id, by=ANA).session)
        (tmp_path / "rates.csv").write_text(NEW)

        assert ([], [("file 'rates.csv' has changed since",)]) == (
            before,
            reasons(relay.resume_session("last", by=ANA).session),
        )

    def test_in_a_series_conditions_are_evaluated_as_well(self, relay: Relay) -> None:
        """Last quarter's decision is open again if what it hung on is not so any more."""
        with relay.start("one", by=ANA, series="quarterly") as lead:
            lead.record(Decision("d", why="w", conditions=("until 2020-01-01",)))
        run = relay.start("two", by=ANA, series="quarterly")

        assert [("it was good until 2020-01-01",)] == reasons(run.session)
        assert [OpenQuestion] == [type(value) for value in values(run)]


class TestLeaving:
    """What does not come along, and why."""

    def test_each_thing_that_is_left_says_why(self, relay: Relay) -> None:
        """Hypotheses, reasoning, what came from outside, files that nobody verified, and what was relaxed."""
        lead = relay.start("begin", by=ANA, items=[Constraint("c")])
        lead.record(Assumption("a"), Claim("cl", confidence=1000))
        reasoning = lead.attach("thoughts.md", "hmm")
        lead.attach("page.html", "<p>", untrusted=True, source="https://example.org")
        lead.attach("draft.md", "text")
        lead.checkpoint([{"role": "user"}])
        (constraint,) = (item for item in lead.notes if item.part == "constraint")
        lead.relax(constraint, by=ANA, reason="no longer needed")
        with lead.hand_off("worker", "do it", brief=Brief(reasoning=reasoning, rationale="because")) as child:
            child.report("done", assumptions=["a2"], claims=["cl2"])
        lead.report("all done")
        lead.close()
        run = relay.resume_session(lead.id, by=ANA)

        assert [one.question for one in run.session.checks] == values(run)
        assert {
            ("a", Fate.HYPOTHESIS),
            ("cl", Fate.HYPOTHESIS),
            ("a2", Fate.HYPOTHESIS),
            ("cl2", Fate.HYPOTHESIS),
            ("draft.md", Fate.UNVERIFIED),
            ("what lead reported", Fate.UNVERIFIED),
            ("thoughts.md", Fate.REASONING),
            ("1 checkpoints of lead", Fate.REASONING),
            ("page.html", Fate.EXTERNAL),
            ("c", Fate.RELAXED),
        } == {(one.what, one.why) for one in run.session.dropped}
        assert ["https://example.org"] == [one.source for one in run.session.dropped if one.source]

    def test_what_a_verified_handoff_gave_comes_along(self, relay: Relay) -> None:
        """Its output, its artifacts, and what it claimed without a doubt; not what it was unsure of."""
        lead = relay.start("begin", by=ANA)
        handoff = lead.hand_off("worker", "count")
        with handoff as child:
            child.attach("rows.csv", "1,2")
            child.report("3 rows", claims=[Claim("sure", confidence=1000), Claim("unsure", confidence=900)])
        handoff.verify(verdict="right", by="user:bob")
        run = relay.resume_session(lead.id, by=ANA)

        work = WorkItem("count", ("3 rows",), "user:bob", f"verdict, see {handoff.id}", handoff.id)
        kept = [value for value in values(run) if not isinstance(value, Artifact)]
        assert [work, Claim("sure", confidence=1000)] == kept
        assert b"1,2" == run.read("rows.csv")

    def test_a_later_artifact_of_the_same_name_replaces_the_verified_one(self, relay: Relay) -> None:
        """What was verified is not what is there now; neither comes along as if it were."""
        clock = FrozenClock()
        relay._clock = clock
        lead = relay.start("begin", by=ANA)
        handoff = lead.hand_off("worker", "count")
        with handoff as child:
            child.attach("rows.csv", "1,2")
            child.report("done")
        handoff.verify(verdict="right", by="user:bob")
        clock.tick()
        lead.attach("rows.csv", "1,2,3")
        run = relay.resume_session(lead.id, by=ANA)

        fates = [one.why for one in run.session.dropped if one.what == "rows.csv"]
        assert [Fate.REPLACED, Fate.UNVERIFIED] == fates

    def test_words_that_were_erased_do_not_come_along(self, relay: Relay) -> None:
        """It is said that something was there."""
        lead = relay.start("begin", by=ANA)
        (item,) = lead.record(Decision("secret"))
        relay.admin.erase([item.id], by=ANA, reason="asked to")
        run = relay.resume_session(lead.id, by=ANA)

        assert ((), [Fate.ERASED]) == (run.notes, [one.why for one in run.session.dropped])

    def test_what_was_said_with_an_offer_comes_along(self, relay: Relay) -> None:
        """A question that was only ever put into a baton is open all the same; what bound one child is not."""
        lead = relay.start("begin", by=ANA)
        lead.hand_off("worker", "do it", items=[OpenQuestion("really?"), Decision("d"), Constraint("for you")])
        run = relay.resume_session(lead.id, by=ANA)

        assert {OpenQuestion("really?"), Decision("d")} == set(values(run))
