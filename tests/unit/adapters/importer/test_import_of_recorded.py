"""Importing a session that hooks recorded: what they were told of is not told again, and what they missed is."""

from collections.abc import Iterator

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.adapters.importer.session_drafts import ImportCounts
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.model.bodies.body import RunStarted
from batonpass.relay import Relay
from tests.unit.adapters.claude_code.histories import SESSION, History
from tests.unit.adapters.claude_code.imports import bring, receipts, runs
from tests.unit.adapters.coders.sessions import Session


@pytest.fixture
def session(history: History, relay: Relay) -> Iterator[Session]:
    """Return a session whose hooks are told what its transcript says as well."""
    tree = WorkTree(history.project, environment={"PATH": "/usr/bin:/bin"}, watch=False)
    recorder = HookRecorder(relay, history.project, by="user:ana", work_tree=tree)
    yield Session(history.project, recorder, id=SESSION)
    recorder.close()


def both(history: History, session: Session) -> None:
    """Let a session happen before the hooks and before the transcript."""
    path = str(history.project / "a.py")
    session.says("Fix it", "p1")
    history.says("Fix it", promptId="p1")
    session.calls("c1", "Read", "x", file_path=path)
    history.uses("c1", "Read", {"file_path": path})
    history.returns("c1", "x")
    session.delegates("c2", "Test it", "tester")
    history.uses("c2", "Agent", {"prompt": "Test it", "subagent_type": "tester"})
    session.starts("a1", "c2", "tester")
    history.says("Test it", history.agent("a1"))
    session.calls("c3", "Bash", "1 failed", "a1", command="pytest")
    history.uses("c3", "Bash", {"command": "pytest"}, history.agent("a1"))
    history.returns("c3", "1 failed", history.agent("a1"))
    history.answers("It fails", history.agent("a1"))
    session.stops("a1", "It fails", "tester")
    session.delegated("c2", "a1", "It fails")
    history.returns("c2", "It fails", toolUseResult={"agentId": "a1", "status": "completed"})
    session.says("Quickly", "p1")
    attachment = {"type": "queued_command", "commandMode": "prompt", "prompt": "Quickly"}
    history.add(history.main(), "attachment", attachment=attachment)
    history.answers("Fixed")
    session.tell("Stop", last_assistant_message="Fixed")


@pytest.mark.parametrize("over", [False, True], ids=["while it is open", "once it is over"])
def test_what_hooks_recorded_is_not_imported(over: bool, history: History, session: Session, relay: Relay) -> None:  # noqa: FBT001 - a case
    """Calls, words and sub-agents are found again by the program's own ids, twice."""
    both(history, session)
    if over:
        session.tell("SessionEnd", reason="other")
    found = [bring(relay, history).counts for _ in range(2)]

    assert [ImportCounts(found=1)] * 2 == found


def test_what_hooks_did_not_see_is_imported(history: History, session: Session, relay: Relay) -> None:
    """What was before them, and calls of which the program tells no hook: once, in a root that continues theirs."""
    history.says("Before", promptId="p0")
    history.uses("c0", "Read", {"file_path": "a.py"})
    history.returns("c0", "x")
    both(history, session)
    history.uses("c9", "Edit", {"file_path": "a.py", "old_string": "no", "new_string": "x"})
    history.returns("c9", "<tool_use_error>String to replace not found</tool_use_error>", ok=False)
    first, second = (bring(relay, history).counts for _ in range(2))

    assert (1, 2, ImportCounts(found=1)) == (first.prompts, first.calls, second)
    started = [one.body for one in receipts(relay, "run.started")]
    assert [None, runs(relay)[0].id] == [body.continues for body in started if isinstance(body, RunStarted)]


def test_a_sub_agent_that_hooks_saw_in_part_is_told_for_the_rest(
    history: History, session: Session, relay: Relay
) -> None:
    """A call of it that no hook was told of is imported below a handoff of its own."""
    both(history, session)
    history.uses("c8", "Read", {"file_path": "b.py"}, history.agent("a1"))
    history.returns("c8", "x", history.agent("a1"))
    counts = bring(relay, history).counts

    assert (0, 1, 1) == (counts.prompts, counts.subagents, counts.calls)


def test_a_gap_is_filled_by_an_import(history: History, session: Session, relay: Relay) -> None:
    """The transcript has the call that could not be recorded."""
    session.says("Fix it", "p1")
    history.says("Fix it", promptId="p1")
    event = {"hook_event_name": "PreToolUse", "session_id": SESSION, "tool_name": "Read", "tool_use_id": "c1"}
    session.recorder.note_gap(event, "the disk was full")
    history.uses("c1", "Read", {"file_path": "a.py"})
    history.returns("c1", "x")

    counts = bring(relay, history).counts

    assert (0, 1) == (counts.prompts, counts.calls)


def test_calls_that_were_recorded_without_ids_are_not_told_again(
    history: History, session: Session, relay: Relay
) -> None:
    """Nothing says which of them are there already, and twice would be wrong."""
    session.says("Fix it", "p1")
    session.calls("inferred-0123456789abcdef-1", "Read", "x", file_path=str(history.project / "a.py"))
    history.says("Fix it", promptId="p1")
    history.uses("c1", "Read", {"file_path": str(history.project / "a.py")})
    history.returns("c1", "x")
    imported = bring(relay, history)

    assert (ImportCounts(found=1), ["was recorded live, and its calls have no ids there to compare: not imported"]) == (
        imported.counts,
        [problem.what for problem in imported.problems],
    )


def test_erased_sessions_stay_away(history: History, session: Session, relay: Relay) -> None:
    """Also if hooks recorded them."""
    both(history, session)
    history.uses("c9", "Read", {"file_path": "a.py"})
    relay.admin.erase([receipts(relay)[0].content["source"].id], by="user:ana", reason="asked to")

    assert ImportCounts(found=1) == bring(relay, history).counts
