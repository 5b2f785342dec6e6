"""Importing again: what is there already is not recorded twice, and what is new goes on from it."""

from typing import Any

import pytest

from batonpass.adapters.claude_code.transcripts.transcript_places import PROGRAM
from batonpass.adapters.importer.import_sources import series_of
from batonpass.adapters.importer.session_drafts import ImportCounts
from batonpass.model.base.ids import ContentId, RunId
from batonpass.model.bodies.body import Kind, RunStarted
from batonpass.relay import Relay, recording_of
from tests.unit.adapters.claude_code.histories import History
from tests.unit.adapters.claude_code.imports import a_session, bring, receipts, runs, words

FORK = "99999999-2222-4333-8444-555555555555"


def test_twice_is_once(relay: Relay, history: History) -> None:
    """Importing again adds nothing."""
    a_session(history)
    bring(relay, history)

    assert ImportCounts(found=1) == bring(relay, history).counts


def test_what_is_new_goes_on_under_a_new_root(relay: Relay, history: History) -> None:
    """It continues the one before, and holds only what is new."""
    a_session(history)
    bring(relay, history)
    history.says("And document it")
    history.uses("c4", "Bash", {"command": "make docs"})
    history.returns("c4", "ok")

    assert ImportCounts(found=1, sessions=1, prompts=1, calls=1, receipts=4) == bring(relay, history).counts
    first, second = (receipt.body for receipt in receipts(relay, Kind.RUN_STARTED))
    assert isinstance(first, RunStarted)
    assert isinstance(second, RunStarted)
    assert (first.run, first.series) == (second.continues, second.series)
    assert "And document it" == words(relay, receipts(relay, Kind.RUN_STARTED)[1], "intent")


def test_work_that_goes_on_stands_under_the_same_words(relay: Relay, history: History) -> None:
    """What is new may begin in the middle of what the human asked for."""
    a_session(history)
    bring(relay, history)
    history.uses("c4", "Bash", {"command": "make docs"})
    bring(relay, history)
    started = receipts(relay, Kind.RUN_STARTED)

    assert ["Fix it", "Fix it"] == [words(relay, receipt, "intent") for receipt in started]


def test_a_result_that_comes_later_is_told_with_its_call(relay: Relay, history: History) -> None:
    """A request without outcome is kept as that; once there is one, both are told, in the next root."""
    history.says("Fix it")
    history.uses("c1", "Bash", {"command": "make"})
    bring(relay, history)
    history.returns("c1", "made")
    bring(relay, history)
    bring(relay, history)

    assert ["tool.requested", "tool.requested", "tool.completed"] == [
        receipt.kind for receipt in receipts(relay, "tool")
    ]


def test_lines_that_say_nothing_new_add_nothing(relay: Relay, history: History) -> None:
    """A file may grow by snapshots alone."""
    a_session(history)
    bring(relay, history)
    history.add(history.main(), "file-history-snapshot", snapshot={})

    assert 0 == bring(relay, history).counts.receipts


def test_a_sub_agent_that_goes_on_is_offered_again(relay: Relay, history: History) -> None:
    """Only what it did since is told."""
    a_session(history)
    bring(relay, history)
    history.says("Once more", history.agent("a1"))
    history.uses("c5", "Bash", {"command": "pytest -x"}, history.agent("a1"))
    history.returns("c5", "ok", history.agent("a1"))
    history.answers("It passes", history.agent("a1"))

    assert ImportCounts(found=1, sessions=1, subagents=1, calls=1, receipts=8) == bring(relay, history).counts
    (told,) = receipts(relay, Kind.RUN_RECORDED)
    assert "Once more" == words(relay, told, "told")


def test_an_import_that_was_cut_off_is_completed(relay: Relay, history: History) -> None:
    """What was recorded before is not recorded again."""
    history.says("Fix it")
    for number in range(400):
        history.uses(f"c{number}", "Bash", {"command": f"step {number}"})
        history.returns(f"c{number}", "ok")

    class StoppedError(Exception):
        """Somebody pulled the plug."""

    ledger = recording_of(relay)._ledger
    append, times = ledger.append, iter(range(10))

    def stop(*drafts: Any) -> Any:  # noqa: ANN401 - as it is
        if next(times) == 2:
            raise StoppedError
        return append(*drafts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ledger), "append", lambda _, *drafts: stop(*drafts))
        with pytest.raises(StoppedError):
            bring(relay, history)
    bring(relay, history)

    assert 400 == len(receipts(relay, Kind.TOOL_COMPLETED))


def test_a_fork_brings_only_its_own(relay: Relay, history: History) -> None:
    """It begins with copies of the original's lines, and continues the original's root."""
    a_session(history)
    bring(relay, history)
    history.write(history.main(FORK), b'{"type":"queue-operation","timestamp":"2026-03-05T00:00:00Z"}\n')
    history.write(history.main(FORK), history.main().read_bytes())
    history.says("Otherwise", history.main(FORK))

    assert ImportCounts(found=2, sessions=1, prompts=1, receipts=2) == bring(relay, history).counts
    first, second = (receipt.body for receipt in receipts(relay, Kind.RUN_STARTED))
    assert isinstance(first, RunStarted)
    assert isinstance(second, RunStarted)
    assert (first.run, series_of(PROGRAM, FORK)) == (second.continues, second.series)


def test_an_original_comes_before_its_fork(relay: Relay, history: History) -> None:
    """Also if both are imported at once, and the fork's name sorts first."""
    fork = "00000000-2222-4333-8444-555555555555"
    a_session(history)
    history.write(history.main(fork), b'{"type":"queue-operation","timestamp":"2026-03-05T00:00:00Z"}\n')
    history.write(history.main(fork), history.main().read_bytes())
    history.says("Otherwise", history.main(fork))
    bring(relay, history)

    assert ["Fix it", "Otherwise"] == [words(relay, receipt, "intent") for receipt in receipts(relay, Kind.RUN_STARTED)]


def test_what_was_erased_does_not_come_back(relay: Relay, history: History) -> None:
    """Whoever erased a session's words meant it."""
    a_session(history)
    bring(relay, history)
    relay.admin.erase(all_contents(relay, runs(relay)[0].id), by="user:ana", reason="private")
    history.says("More")
    imported = bring(relay, history)

    assert 0 == imported.counts.receipts
    assert [f"{history.main()}:0: was erased in this ledger and is not imported again"] == list(
        map(str, imported.problems)
    )


def all_contents(relay: Relay, root: RunId) -> list[ContentId]:
    return [ref.id for receipt in receipts(relay) if receipt.root == root for ref in receipt.content.values()]
