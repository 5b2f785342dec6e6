"""Lines of events as docs/spec/events.md says them: what they become, and what is counted and named."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.line_blame import blame
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.adapters.trace_files.event_lines import EVENTS, EventLines
from batonpass.relay import Relay

SPECIFIED = Path(__file__).parents[4] / "docs" / "spec" / "events.md"
AT = "2026-11-17T12:00:{:02}Z"


def a_file(tmp_path: Path, *events: dict[str, Any]) -> Path:
    """Write events of one session, a second apart."""
    path = tmp_path / "events.jsonl"
    told = [{"session": "s", "at": AT.format(number), **event} for number, event in enumerate(events)]
    path.write_text("".join(f"{json.dumps(one)}\n" for one in told), encoding="utf-8")
    return path


JOB: tuple[dict[str, Any], ...] = (
    {"type": "session", "agent": "lead", "version": "7", "model": "m"},
    {"type": "prompt", "text": "Round half-even"},
    {"type": "handoff", "to": "r1", "agent": "editor", "task": "Write src/invoice.py"},
    {"type": "call", "run": "r1", "call": "c1", "tool": "write_file", "arguments": {"path": "src/invoice.py"}},
    {
        "type": "result",
        "run": "r1",
        "call": "c1",
        "text": "written",
        "changes": [{"path": "src/invoice.py", "before": None, "after": "def total():\n    return 1\n"}],
    },
    {"type": "said", "run": "r1", "text": "edited"},
    {"type": "end", "run": "r1"},
    {"type": "call", "call": "c2", "tool": "mail"},
    {"type": "result", "call": "c2", "ok": False, "text": "no network"},
    {"type": "end", "status": "failed"},
)


def test_a_session_is_told(tmp_path: Path) -> None:
    """Who asked whom for what, with which outcome."""
    reader = EventLines([str(a_file(tmp_path, *JOB))])
    (files,) = reader.find(tmp_path)

    told = read_conversation(reader, files, tmp_path)

    (editor,) = told.main.children
    assert ("lead", "7", "m") == (told.info.agent, told.info.version, told.info.model)
    assert ["Round half-even"] == [prompt.text for prompt in told.prompts]
    assert ("editor", "Write src/invoice.py", "completed") == (editor.agent_type, editor.task, editor.status)
    assert [("write_file", True)] == [(call.use.tool, call.result is not None) for call in editor.calls]
    assert [("mail", "no network")] == [
        (call.use.tool, call.result.text) for call in told.main.calls if call.result is not None
    ]
    assert "failed" == told.main.status


def test_changed_lines_are_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that a result tells whole is the call's, line by line."""
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    place = tmp_path / "src" / "invoice.py"
    place.parent.mkdir()
    place.write_text("def total():\n    return 1\n", encoding="utf-8")
    with Relay.open(tmp_path / ".batonpass" / "ledger.db", home=tmp_path / ".batonpass", keys_in_files=True) as relay:
        import_sessions(relay, tmp_path, EventLines([str(a_file(tmp_path, *JOB))]), by="user:ana")

    assert "editor" in str(blame(place, line=2))


def test_what_the_format_does_not_have_is_counted_and_named(tmp_path: Path) -> None:
    """Unknown fields and types, times that are none, ids of others, and lines that are no events."""
    path = a_file(
        tmp_path,
        {"type": "prompt", "text": "a", "mood": "good", "id": "e1"},
        {"type": "prompt", "text": "b", "mood": "bad"},
        {"type": "dance"},
        {"text": "no type"},
        {"type": "prompt", "text": "c", "at": "yesterday"},
        {"type": "prompt", "text": "d", "id": "e1"},
        {"type": "prompt"},
    )
    with path.open("a") as file:
        file.write("{\n")
    reader = EventLines([str(path)])

    with Relay.open("memory:") as relay:
        imported = import_sessions(relay, tmp_path, reader, by="user:ana")

    assert [
        (5, "has no time: 'yesterday'", 1),
        (6, "has the id 'e1' of another event", 1),
        (7, "is not as expected: Object missing required field `text`", 1),
        (8, "is not JSON", 1),
        (1, "has a field 'mood', which prompt does not have (2 times)", 2),
        (3, "has the type 'dance', which is not known", 1),
        (4, "has no type", 1),
    ] == [(one.line, one.what, one.times) for one in imported.problems]
    assert (2, 8) == (imported.counts.prompts, imported.counts.unread)


def test_an_event_that_is_told_again_is_one(tmp_path: Path) -> None:
    """A file that was written twice, or grew, adds only what is new."""
    path = a_file(tmp_path, *JOB)
    path.write_bytes(path.read_bytes() * 2)
    with Relay.open("memory:") as relay:
        first = import_sessions(relay, tmp_path, EventLines([str(path)]), by="user:ana")
        with path.open("a") as file:
            file.write(json.dumps({"type": "prompt", "session": "s", "at": AT.format(30), "text": "And tests"}) + "\n")
        second = import_sessions(relay, tmp_path, EventLines([str(path)]), by="user:ana")

    assert (1, 1, 2) == (first.counts.prompts, first.counts.subagents, first.counts.calls)
    assert (1, 0, 0) == (second.counts.prompts, second.counts.subagents, second.counts.calls)
    assert () == first.problems


def test_the_specification_names_every_field() -> None:
    """Each type of event has its row, and no field is missing there or too much."""
    text = SPECIFIED.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*) \|$", text, re.MULTILINE))
    told = {kind: set(re.findall(r"`(\w+)`", fields)) for kind, fields in rows.items()}
    always = {"type", "session", "at", "id"}

    assert told == {str(one.__struct_config__.tag): set(one.__struct_fields__) - always for one in EVENTS}
