"""What each adapter does when something of ours breaks, and when a program says for whom it works."""

import warnings
from typing import Any, Final

import pytest

from batonpass.adapters.frameworks.agent_work import AgentWork
from batonpass.model.bodies.body import HandoffCompleted, HandoffInitiated, RunStarted
from tests.frameworks.suite import ENOUGH, PERSON, WORDS, Delegate, Driver, Say, Script, Stage, write

SCENE: Final[Script] = {
    "lead": [[Delegate("editor")], [Delegate("checker")], Say("done")],
    "editor": [[write("a")], [write("b")], Say("ok")],
    "checker": [Say("checked")],
}
GRANTS: Final = {"lead": ENOUGH, "editor": ENOUGH, "checker": ENOUGH}
# What recording an agent leans on. A part that one adapter never needs breaks nothing there, as it should be.
PARTS: Final = (
    *("begin_call", "finish_call", "fail_call", "offer_task", "desk_of", "prepare_input", "keep_result"),
    *("show_outside", "FrameworkLedger.grant_for", "LiveHandoff.accept", "LiveHandoff.result"),
    *("LiveRun.checkpoint", "LiveRun.report", "LiveRun.close", "LiveRun.handoff"),
)
BEFORE_A_DEED: Final = ("open", "checkpoint", "begin", "offer")


class FaultConformance:
    """An observed program never notices us; an enforced one does nothing that nobody judged."""

    @pytest.mark.parametrize("part", PARTS)
    def test_a_recorder_that_fails_stops_nobody(
        self, driver: Driver, stage: Stage, monkeypatch: pytest.MonkeyPatch, part: str
    ) -> None:
        """Whatever of ours breaks, an observed program gets what it gets without us."""

        def fail(*_: Any, **__: Any) -> Any:
            raise ZeroDivisionError(part)

        with stage.relay().start(WORDS, by=PERSON):
            without = driver.play_unrecorded(stage, SCENE)
        monkeypatch.setattr(f"batonpass.adapters.frameworks.agent_work.{part}", fail)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recorded = driver.play(stage, SCENE)

        assert ["write a", "write b"] * 2 == stage.made
        assert (without.answer, without.error, without.given) == (recorded.answer, recorded.error, recorded.given)

    @pytest.mark.parametrize("method", BEFORE_A_DEED)
    def test_a_recorder_that_fails_stops_an_enforced_program(
        self, driver: Driver, stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str
    ) -> None:
        """Whatever of ours breaks, nothing is done that nobody judged."""

        def fail(*_: Any, **__: Any) -> Any:
            raise ZeroDivisionError(method)

        with stage.relay().start(WORDS, by=PERSON):
            monkeypatch.setattr(AgentWork, method, fail)

        driver.play(stage, SCENE, grants=GRANTS)

        assert [] == stage.made

    def test_a_ledger_that_cannot_be_opened_stops_nobody(self, driver: Driver, stage: Stage) -> None:
        """Observed, the program works as without us, and is warned once."""
        (stage.directory / ".batonpass").write_text("this is no directory", encoding="utf-8")

        with pytest.warns(UserWarning, match="not recorded") as warned:
            told = driver.play(stage, SCENE, relay=None)

        assert ("done", ["write a", "write b"]) == (told.answer, stage.made)
        assert 1 == len([one for one in warned if "not recorded" in str(one.message)])

    def test_a_program_says_for_whom_in_one_context(self, driver: Driver, stage: Stage) -> None:
        """Inside of a run, agents are handed its work: principal and intent are the run's."""
        relay = stage.relay()

        with relay.start("Close the quarter", by="user:bob", agent="program"):
            driver.play(stage, {"lead": [Say("done")]}, by=None, relay=relay)

        assert [("program", "user:bob")] == [(body.agent, body.principal) for body in stage.recorded(RunStarted)]
        assert [WORDS] == stage.words(HandoffInitiated, "task")

    def test_the_same_words_twice_are_two_handoffs(self, driver: Driver, stage: Stage) -> None:
        """A framework asks an agent again because it wants the work done again."""
        script: Script = {
            "lead": [[Delegate("editor")], [Delegate("editor")], Say("done")],
            "editor": [[write("a")], Say("ok"), [write("a")], Say("ok")],
        }

        told = driver.play(stage, script)

        assert "done" == told.answer
        assert ["write a"] * 2 == stage.made
        assert 2 == len(stage.recorded(HandoffCompleted))
