"""Nothing that a session does or says stops the recorder: many at once, hostile names, huge inputs, and gaps."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.errors import StoreBusyError
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import Session, lines, receipts, told


def test_many_at_once(session: Session, relay: Relay) -> None:
    """Parallel sub-agents call tools at the same moment: each call is recorded once, in the run that made it."""
    agents = [f"a{number}" for number in range(8)]
    session.says("Go")
    for agent in agents:
        session.delegates(f"start-{agent}", agent)
        session.starts(agent, f"start-{agent}")
    ready = threading.Barrier(len(agents))
    failed: list[Exception] = []

    def work(agent: str) -> None:
        ready.wait()
        try:
            for number in range(5):
                session.calls(f"{agent}-{number}", "Read", "x", agent, file_path=f"{number}.py")
            session.stops(agent, f"{agent} is done")
        except Exception as error:  # noqa: BLE001 - it belongs to the test, not to the thread
            failed.append(error)

    threads = [threading.Thread(target=work, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == failed
    runs = {one["stream"]: one["content"]["source"]["subagent"] for one in receipts(relay, "handoff.accepted")}
    made = [(runs[one["stream"]], one["content"]["source"]["key"]) for one in receipts(relay, "tool.completed")]
    assert sorted((agent, f"{agent}-{number}") for agent in agents for number in range(5)) == sorted(made)
    tasks = {one["body"]["handoff"]: one["content"]["task"] for one in receipts(relay, "handoff.initiated")}
    assert {agent: f"{agent} is done" for agent in agents} == {
        tasks[one["body"]["handoff"]]: one["content"]["report"] for one in receipts(relay, "handoff.completed")
    }


def test_the_same_event_from_two_threads_is_recorded_once(session: Session, relay: Relay) -> None:
    """A hook that is asked again while the first answer is on its way."""
    session.says("Go")
    threads = [threading.Thread(target=session.asks, args=("c1", "Read"), kwargs={"file_path": "a"}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["run-1 tool.requested c1"] == lines(relay, "tool.requested")


HOSTILE = [
    "\0",
    "\ud800",
    "\x1b[31m",
    "\u202eevil",
    "a\nb",
    "../../../etc/passwd",
    "~/.ssh/id_rsa",
    "x" * 5000,
    " ",
    "CON",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("tool", ["Edit", "Bash"])
def test_hostile_names(name: str, tool: str, session: Session, relay: Relay) -> None:
    """Of tools, files, types and words: they are data, and arrive where somebody reads them as what they are."""
    session.says(f"Go {name}")
    session.calls("c1", tool, {"filePath": name, "structuredPatch": [], "originalFile": name}, file_path=name)
    session.calls("c2", f"mcp__{name.strip() or 'x'}"[:256], name, command=name)
    session.delegates("c3", name, name)
    session.starts("a1", "c3", name)
    session.stops("a1", name, name)
    session.fails("c4", "Bash", name, command=name)
    session.tell("SessionEnd", reason=name)

    assert "run.closed" == told(relay)[-1]["kind"]


@pytest.mark.slow
def test_huge_inputs(session: Session, relay: Relay, project: Path) -> None:
    """Ten megabytes of arguments and as many of result are kept; of more than that, how much it was."""
    text = "é" * (5 * 1024 * 1024)
    session.says("Go")
    session.calls("c1", "Write", text, file_path=str(project / "b.txt"), content=text)
    session.calls("c2", "Bash", text * 2, command=text * 2)

    kept = receipts(relay, "tool.requested")
    assert text == kept[0]["content"]["arguments"]["arguments"]["content"]
    assert {"shown": "20,971,562 bytes"} == kept[1]["content"]["arguments"]["arguments"]
    assert [len(text), len("(20,971,520 bytes)")] == [
        len(one["content"]["result"]) for one in receipts(relay, "tool.completed")
    ]


def test_deeply_nested_inputs(session: Session, relay: Relay) -> None:
    """They are shown as far as anybody would look."""
    nested: object = "x"
    for _ in range(500):
        nested = [nested]
    session.says("Go")
    session.calls("c1", "Bash", nested, command=nested)

    assert "nested too deep" in json.dumps(receipts(relay, "tool.requested")[0]["content"])


def test_a_gap_is_recorded_with_its_reason(session: Session, relay: Relay) -> None:
    """Whoever could not record an event says so, where the session is."""
    session.says("Go")
    session.recorder.note_gap(json.loads(session.heard[0]), "the disk was full")

    (gap,) = receipts(relay, "run.gap")
    assert ({"run": "run-1", "calls": 1}, "UserPromptSubmit: the disk was full") == (
        gap["body"],
        gap["content"]["reason"],
    )


def test_a_gap_that_belongs_to_no_session_is_recorded_in_the_next(session: Session, relay: Relay) -> None:
    """What could not even be read is not forgotten."""
    session.recorder.note_gap(None, "the recorder was ended")
    session.recorder.note_gap({"hook_event_name": "PreToolUse", "session_id": 7}, "no session")
    session.says("Go")
    session.calls("c1", "Read", "x", file_path="a.py")

    (gap,) = receipts(relay, "run.gap")
    assert (2, "event: the recorder was ended\nPreToolUse: no session") == (
        gap["body"]["calls"],
        gap["content"]["reason"],
    )
    assert ["run.started", "run.gap", "tool.requested", "tool.completed"] == [one["kind"] for one in told(relay)]


def test_words_that_were_missed_are_recorded_with_the_gap(session: Session, relay: Relay) -> None:
    """The event that could not be recorded has them: they are not lost, and not said twice."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": session.id, "prompt": "Go", "prompt_id": "p1"}
    session.recorder.note_gap(event, "the disk was full")
    session.says("Go")

    assert ["run-1 run.started p1", "run-1 run.gap"] == lines(relay)
    assert "Go" == told(relay)[0]["content"]["intent"]


def test_an_outcome_that_comes_too_late_is_kept_as_evidence(
    session: Session, relay: Relay, record: Callable[[], HookRecorder]
) -> None:
    """The sub-agent was over: its run takes no more, so it stands beside it, once."""
    session.says("Go")
    session.delegates("c1", "One")
    session.starts("a1", "c1")
    session.asks("c2", "Bash", "a1", command="sleep 1")
    session.stops("a1", "Done.")
    session.returns("c2", "Bash", "late", "a1", command="sleep 1")
    session.recorder = record()
    session.returns("c2", "Bash", "late", "a1", command="sleep 1")

    (late,) = receipts(relay, "handoff.late")
    assert {"handoff": "handoff-1", "run": "run-2", "call": "call-1", "completed": True} == late["body"]
    assert ("late", "c2") == (late["content"]["result"], late["content"]["source"]["key"])


def test_what_cannot_be_written_is_a_gap(session: Session, relay: Relay, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that is only watched goes on; the next thing that can be written says how many calls are missing."""
    session.says("Go")

    def busy(*_: object) -> None:
        raise StoreBusyError("somebody")

    with monkeypatch.context() as patched:
        patched.setattr(relay.store, "append", busy)
        assert {} == session.asks("c1", "Bash", command="make")
        with pytest.raises(StoreBusyError):
            session.recorder.note_gap(json.loads(session.heard[-1]), "busy")
    session.asks("c2", "Bash", command="make")

    assert ["run-1 run.started p1", "run-1 run.gap", "run-1 tool.requested c2"] == lines(relay)


def test_more_sessions_than_are_kept_in_mind(
    project: Path, relay: Relay, record: Callable[[], HookRecorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that were forgotten, the ledger is asked."""
    monkeypatch.setattr("batonpass.adapters.coders.session.hook_recorder._MOST_SESSIONS", 2)
    recorder = record()
    sessions = [Session(project, recorder, id=f"{number:08d}-2222-4333-8444-555555555555") for number in range(4)]
    for each in sessions:
        each.says("Go")
    for each in sessions:
        each.calls("c1", "Read", "x", file_path="a.py")

    assert [f"run-{number}" for number in (1, 2, 3, 4)] == [one["stream"] for one in receipts(relay, "tool.completed")]
