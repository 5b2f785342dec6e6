"""Each event of a session becomes the receipts that it should, field by field."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.adapters.importer.import_sources import series_of, session_id_of
from batonpass.errors import InvalidValueError
from batonpass.model.base.kinds import Mode
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import SESSION, Session, lines, receipts, told

SOURCE = {"source": "claude-code", "recorded": True}
OURS = {"integrity": "tool_output", "readers": None}
ENDED: dict[str, object] = {
    "changes": [],
    "flags": [],
    "label": OURS,
    "took_us": None,
    "exit_code": None,
    "effects": [],
    "taint": None,
    "commits": [],
}
OWN = {"integrity": "llm_generated", "readers": None}


def a_receipt(stream: str, seq: int, kind: str, body: Mapping[str, object], **content: object) -> dict[str, object]:
    return {
        "stream": stream,
        "seq": seq,
        "kind": kind,
        "mode": "observed",
        "session": session_id_of("claude-code", SESSION),
        "cosigned": True,
        "body": body,
        "content": content,
    }


def test_a_prompt_begins_a_root(session: Session, relay: Relay) -> None:
    """The human's first words are the intent of a root run, in the series of the session."""
    session.says("Fix the rounding")

    body = {
        "run": "run-1",
        "agent": "claude-code",
        "principal": "user:ana",
        "run_key": "DIGEST",
        "continues": None,
        "series": series_of("claude-code", SESSION),
        "policy": None,
        "label": {"integrity": "user_input", "readers": None},
        "terms": None,
        "certificate": None,
        "trace": None,
        "upstream": 0,
    }
    expected = a_receipt("run-1", 1, "run.started", body, intent="Fix the rounding", source={**SOURCE, "key": "p1"})
    assert [expected] == told(relay)


def test_later_prompts_are_statements(session: Session, relay: Relay) -> None:
    """They go on in the same run, and humans said them."""
    session.says("Fix the rounding")
    session.says("And the tests", "p2")

    item = {"item": "content-1", "digest": "DIGEST", "part": "intent"}
    body = {"run": "run-1", "by": "user:ana", "items": [item], "label": None}
    expected = a_receipt(
        "run-1", 2, "run.recorded", body, source={**SOURCE, "key": "p2"}, **{"intent.1": "And the tests"}
    )
    assert expected == told(relay)[1]
    with relay.store.view() as view:
        assert ["user:ana", "user:ana"] == [stated.by for stated in view.find_statements()]


def test_words_said_while_the_model_works_have_a_name_of_their_own(session: Session, relay: Relay) -> None:
    """They come under the id of what the model works on; told twice, they are recorded once."""
    session.says("Fix the rounding")
    session.says("Quickly")
    session.says("Quickly")

    assert ["run-1 run.started p1", "run-1 run.recorded p1/2"] == lines(relay)


def test_notices_are_not_the_humans(session: Session, relay: Relay) -> None:
    """What the program says by the same way is no statement."""
    session.says("Fix the rounding")
    session.says("<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>", "p2")

    assert ["run-1 run.started p1"] == lines(relay)


def test_a_call_is_requested_and_completed(session: Session, relay: Relay) -> None:
    """The request has tool, arguments and key before the call; the outcome has the result after it."""
    session.says("Look")
    session.calls("c1", "Read", {"type": "text", "file": {"content": "one"}}, file_path="a.py")

    requested: dict[str, object] = {
        "run": "run-1",
        "call": "call-1",
        "tool": "Read",
        "key": "DIGEST",
        "target": None,
        "idempotent": False,
        "reversible": False,
        "reads": True,
        "flags": [],
        "tiers": [],
        "credential": None,
        "charges": [],
        "label": OWN,
        "untrusted": [],
    }
    completed = {"run": "run-1", "call": "call-1", "cost": 0, "flags": [], "changes": []}
    completed |= {"cache": None, "fresh_until": None, "charges": [], **ENDED}
    arguments = {"tool": "Read", "arguments": {"file_path": "a.py"}}
    source = {**SOURCE, "key": "c1"}
    assert [
        a_receipt("run-1", 2, "tool.requested", requested, arguments=arguments, scope="read:a.py", source=source),
        a_receipt(
            "run-1",
            3,
            "tool.completed",
            completed,
            result={"type": "text", "file": {"content": "one"}},
            source=source,
        ),
    ] == told(relay)[1:]


@pytest.mark.parametrize(("tool", "integrity"), [("WebFetch", "external"), ("mcp__mail__read", "external")])
def test_what_comes_from_outside_is_labelled_so(session: Session, relay: Relay, tool: str, integrity: str) -> None:
    """The web, and servers of others, are not ours; the run itself says nothing of labels."""
    session.says("Look")
    session.calls("c1", tool, "a page", url="https://a.example")

    assert integrity == receipts(relay, "tool.completed")[0]["body"]["label"]["integrity"]
    relay.verify()


def test_the_request_is_there_before_the_answer(session: Session, relay: Relay) -> None:
    """Whatever becomes of the call, it is known that it was to be made."""
    session.says("Go")
    answer = session.asks("c1", "Bash", command="make")

    assert ({}, ["run-1 run.started p1", "run-1 tool.requested c1"]) == (answer, lines(relay))


def test_a_failed_call_says_why(session: Session, relay: Relay) -> None:
    """The error is content; its code is the program's."""
    session.says("Go")
    session.asks("c1", "Bash", command="false")
    session.fails("c1", "Bash", "Exit code 1", command="false")

    body = {"run": "run-1", "call": "call-1", "error": "claude-code.failed", **ENDED}
    assert (
        a_receipt("run-1", 3, "tool.failed", body, message="Exit code 1", source={**SOURCE, "key": "c1"})
        == told(relay)[2]
    )


def test_events_that_are_told_twice_are_recorded_once(session: Session, relay: Relay) -> None:
    """A hook that had no answer in time may be asked again."""
    session.says("Go")
    session.says("Go")
    for _ in range(2):
        session.asks("c1", "Bash", command="true")
    for _ in range(2):
        session.returns("c1", "Bash", {"stdout": ""}, command="true")

    assert ["run-1 run.started p1", "run-1 tool.requested c1", "run-1 tool.completed c1"] == lines(relay)


def test_a_call_that_nobody_saw_begin_is_recorded_late(session: Session, relay: Relay) -> None:
    """Its request says that it was written afterwards."""
    session.says("Go")
    session.returns("c1", "Read", "one", file_path="a.py")

    assert [True, None] == [one["content"]["source"].get("late") for one in told(relay)[1:]]


def test_a_session_whose_beginning_nobody_heard_has_a_root(session: Session, relay: Relay) -> None:
    """Hooks that are installed in the middle of it: what was asked for is not known, and said not to be."""
    session.asks("c1", "Read", file_path="a.py")

    assert "intent" not in told(relay)[0]["content"]
    assert ["run-1 run.started", "run-1 tool.requested c1"] == lines(relay)


def test_the_answer_is_kept_and_is_the_report(session: Session, relay: Relay) -> None:
    """What the model says in the end of each turn is recorded; the last of it is what the session gives back."""
    session.says("Go")
    session.tell("Stop", last_assistant_message="Done.", background_tasks=[])
    session.tell("SessionEnd", reason="other")

    closed: dict[str, object] = {
        "run": "run-1",
        "outcome": "completed",
        "children": [],
        "effects": [],
        "unverified": [],
    }
    closed |= {"flags": [], "label": OWN, "waiting": [], "waiting_calls": []}
    source = {**SOURCE, "key": f"end/{SESSION}", "status": "other"}
    assert [
        a_receipt(
            "run-1",
            2,
            "run.recorded",
            {"run": "run-1", "by": "agent:claude-code", "items": [], "label": None},
            said="Done.",
            source={**SOURCE, "key": "stop/p1"},
        ),
        a_receipt("run-1", 3, "run.closed", closed, report="Done.", source=source),
    ] == told(relay)[1:]


def test_a_session_that_goes_on_after_its_end_continues(session: Session, relay: Relay) -> None:
    """`--continue` has the same session: its next root continues the last one."""
    session.says("Go")
    session.tell("SessionEnd", reason="other")
    session.tell("SessionStart", source="resume")
    session.says("Go on", "p2")

    assert [None, "run-1"] == [one["body"]["continues"] for one in receipts(relay, "run.started")]


def test_a_crash_leaves_everything_open(session: Session, relay: Relay) -> None:
    """Nobody says that a call ended: it has no outcome, and the session goes on where it was."""
    session.says("Go")
    session.asks("c1", "Bash", command="sleep 1000")
    session.tell("SessionStart", source="resume")
    session.says("Again", "p2")

    assert ["run-1 run.started p1", "run-1 tool.requested c1", "run-1 run.recorded p2"] == lines(relay)


@pytest.mark.parametrize("event", [{}, {"hook_event_name": "Notification"}, {"hook_event_name": 7}])
def test_other_events_are_passed_over(event: dict[str, object], session: Session, relay: Relay) -> None:
    """The next version may tell hooks of more."""
    assert {} == session.recorder.handle(event)
    assert not relay.store.founded()


@pytest.mark.parametrize(
    "event",
    [
        {"hook_event_name": "PreToolUse", "session_id": SESSION, "tool_name": "Bash"},
        {"hook_event_name": "PreToolUse", "session_id": SESSION, "tool_use_id": "c1"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "Go"},
        {"hook_event_name": "Stop", "session_id": ""},
        {"hook_event_name": "Stop", "session_id": "s" * 257},
        {"hook_event_name": "SubagentStop", "session_id": SESSION, "agent_id": "../../etc"},
    ],
)
def test_events_in_another_shape_are_refused(event: dict[str, object], session: Session) -> None:
    """What we rely on is there, or the event is not recorded: whoever sent it notes a gap."""
    with pytest.raises(InvalidValueError):
        session.recorder.handle(event)


def test_a_refused_call_is_recorded_with_its_rule(relay: Relay, project: Path) -> None:
    """The model is told why; the arguments and the rule are kept, and the run says that it is held to rules."""
    rule = '[[rules]]\nname = "no-shell"\non = "call"\ngate = "deny"\nagent = "claude-code"\ntool = "Bash"\n'
    (project / "batonpass.toml").write_text(rule, encoding="utf-8")
    session = Session(project, HookRecorder(relay, project, mode=Mode.ENFORCED, by="user:ana"))
    session.says("Go")
    answers = [session.asks("c1", "Bash", command="rm -rf x") for _ in range(2)]

    why = (
        "claude-code calls Bash; rule no-shell says deny (rule no-shell, batonpass.toml:1); "
        "do it in a way that is allowed, "
        "or have the rule changed"
    )
    reply = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": f"Denied, and not made: {why}",
    }
    assert [{"hookSpecificOutput": reply}] * 2 == answers
    denied = {"run": "run-1", "call": "call-1", "tool": "Bash", "rule": "no-shell"}
    expected = a_receipt(
        "run-1",
        2,
        "tool.denied",
        denied,
        arguments={"tool": "Bash", "arguments": {"command": "rm -rf x"}},
        reason=why,
        source={**SOURCE, "key": "c1"},
    )
    assert [{**expected, "mode": "enforced"}] == told(relay)[1:]


def test_a_call_that_claude_code_refused_is_settled_by_the_transcript(session: Session, relay: Relay) -> None:
    """No hook is told; the end of the transcript says who refused it, when the turn is over."""
    session.says("Go")
    session.asks("c1", "Bash", command="rm a.py")
    session.asks("c2", "Bash", command="sleep 1000")
    block = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "Permission denied."}
    session.keep(
        session.transcript.name,
        {"type": "user", "toolDenialKind": "permission-rule", "message": {"role": "user", "content": [block]}},
    )
    session.tell("Stop", last_assistant_message="I may not.")

    body = {"run": "run-1", "call": "call-1", "error": "claude-code.permission-rule", **ENDED}
    assert [
        a_receipt("run-1", 4, "tool.failed", body, message="Permission denied.", source={**SOURCE, "key": "c1"})
    ] == receipts(relay, "tool.failed")
    assert ["run-1 run.recorded stop/p1"] == lines(relay)[4:]


def test_two_sessions_are_two_trees(session: Session, relay: Relay, project: Path) -> None:
    """They work in one project at the same time."""
    other = Session(project, session.recorder, id="22222222-2222-4333-8444-555555555555")
    session.says("One")
    other.says("Other")
    session.calls("c1", "Read", "x", file_path="a.py")
    other.calls("c1", "Read", "x", file_path="a.py")

    assert ["run-1", "run-2", "run-1", "run-1", "run-2", "run-2"] == [one["stream"] for one in told(relay)]


def test_a_root_that_somebody_closed_is_continued(
    session: Session, relay: Relay, record: Callable[[], HookRecorder]
) -> None:
    """An operator may close it; the session goes on in another."""
    session.says("Go")
    relay.resume().close()
    session.calls("c1", "Read", "x", file_path="a.py")
    session.recorder = record()
    session.calls("c2", "Read", "y", file_path="a.py")

    assert [None, "run-1"] == [one["body"]["continues"] for one in receipts(relay, "run.started")]
    assert ["run-2", "run-2"] == [one["stream"] for one in receipts(relay, "tool.completed")]


@pytest.mark.parametrize("name", ["Stop", "SessionEnd", "SubagentStart"])
def test_what_ends_a_session_that_nobody_saw_begin_says_nothing(name: str, session: Session, relay: Relay) -> None:
    """There is nothing to end."""
    session.tell(name, agent_id="a1" if name == "SubagentStart" else None)

    assert [] == lines(relay)


def test_a_call_whose_end_only_the_transcript_has(session: Session, relay: Relay) -> None:
    """It was made; what it changed is not known. One during which the program died stays in doubt."""
    session.says("Go")
    session.asks("c1", "Bash", command="make")
    session.asks("c2", "Bash", command="make more")
    for call, more in (("c1", {}), ("c2", {"toolDenialKind": "interrupted"})):
        block = {"type": "tool_result", "tool_use_id": call, "is_error": bool(more), "content": "made"}
        session.keep(session.transcript.name, {"type": "user", "message": {"role": "user", "content": [block]}, **more})
    session.tell("Stop", last_assistant_message="Done.")

    (completed,) = receipts(relay, "tool.completed")
    assert ("call-1", ["changes.unseen"], "made") == (
        completed["body"]["call"],
        completed["body"]["flags"],
        completed["content"]["result"],
    )


def test_a_long_transcript_is_read_from_its_end(session: Session, relay: Relay) -> None:
    """What lies further back than anybody reads stays in doubt; half a line is none."""
    session.says("Go")
    session.asks("c1", "Bash", command="rm a.py")
    session.asks("c2", "Bash", command="rm b.py")
    for call, filler in (("c1", "x" * 600_000), ("c2", "")):
        block = {"type": "tool_result", "tool_use_id": call, "is_error": True, "content": "No."}
        line = {"type": "user", "toolDenialKind": "user-rejected", "message": {"role": "user", "content": [block]}}
        session.keep(session.transcript.name, line)
        session.keep(session.transcript.name, {"type": "system", "content": filler})
    session.tell("Stop", last_assistant_message="All right.")

    assert ["run-1 tool.failed c2"] == lines(relay, "tool.failed")
