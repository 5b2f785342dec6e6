"""Files that somebody wrote to do harm, files of any length, and files that grow: each reader of lines gets them."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.importer.session_import import import_sessions
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.adapters.session_files.readers.codex import CodexSessions
from batonpass.adapters.session_files.readers.copilot import CopilotSessions
from batonpass.adapters.session_files.readers.droid import DroidSessions
from batonpass.adapters.session_files.readers.gemini import GeminiSessions
from batonpass.adapters.session_files.readers.qwen import QwenSessions
from batonpass.adapters.session_files.session_place import SessionFiles
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import SkippedLine
from batonpass.relay import Relay
from tests.unit.cli.transcripts import a_bare_desk

LINES = [CodexSessions, CopilotSessions, DroidSessions, GeminiSessions, QwenSessions]
LONG = "x" * 100_000
AT_MOST = 6 * 1024 * 1024  # of forty million characters
ESCAPE = "\x1b[2J\x1b]0;owned\x07"


def a_thread(home: Path, project: Path, *payloads: tuple[str, dict[str, Any]], name: str = "t1", **meta: str) -> Path:
    """Write a thread of Codex."""
    path = home / "sessions" / "2026" / "11" / "17" / f"rollout-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    first = ("session_meta", {"id": name, "cwd": str(project), **meta})
    lines = [{"timestamp": "2026-11-17T12:00:00Z", "type": kind, "payload": told} for kind, told in (first, *payloads)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def a_patch(project: Path, call: str = "c1", path: str = "a.py") -> list[tuple[str, dict[str, Any]]]:
    change = {str(project / path): {"type": "add", "content": "value = compute_everything()\n"}}
    item = {"type": "FileChange", "id": call, "status": "completed", "changes": change}
    return [
        ("response_item", {"type": "custom_tool_call", "name": "apply_patch", "call_id": call, "input": ESCAPE}),
        ("event_msg", {"type": "item_completed", "item": item}),
        ("response_item", {"type": "custom_tool_call_output", "call_id": call, "output": "Exit code: 0\n"}),
    ]


@pytest.mark.parametrize("reader", LINES, ids=lambda one: str(one.program))
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"[" * 100_000 + b"\n", id="nested without end"),
        pytest.param(b'{"type":"message","message":7,"payload":[],"data":null}\n', id="another shape"),
        pytest.param(b"\x00\xff\xfe\n" * 10, id="bytes"),
        pytest.param(b'{"timestamp":"999999-01-01T00:00:00Z"}\n', id="a time that there is not"),
    ],
)
def test_nonsense_is_left_out(reader: Callable[[Path], SessionReader], data: bytes, tmp_path: Path) -> None:
    """It is said to be unreadable, or it says nothing; nobody fails because of it."""
    main = tmp_path / "session.jsonl"
    main.write_bytes(data)
    found = list(reader(tmp_path).read(SessionFiles(session="s", main=main), tmp_path))

    assert [True] * (len(found) - 1) == [isinstance(one, SkippedLine) for one in found[:-1]]


@pytest.mark.parametrize("reader", LINES, ids=lambda one: str(one.program))
def test_a_long_session_is_streamed(reader: Callable[[Path], SessionReader], tmp_path: Path) -> None:
    """Reading it takes the memory of some lines, however many there are."""
    main = tmp_path / "session.jsonl"
    told = {"timestamp": "2026-11-17T12:00:00Z", "cwd": str(tmp_path), "message": {"role": "user", "content": LONG}}
    with main.open("w") as file:
        for _ in range(400):
            file.write(json.dumps({**told, "payload": {"text": LONG}, "data": {}, "type": "message"}) + "\n")
    files = SessionFiles(session="s", main=main)
    tracemalloc.start()
    try:
        for _ in reader(tmp_path).read(files, tmp_path):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < AT_MOST


def test_a_thread_cannot_be_its_own_ancestor(tmp_path: Path) -> None:
    """Two that name each other are each found once, and none is lost."""
    a_thread(tmp_path, tmp_path, name="one", parent_thread_id="two")
    a_thread(tmp_path, tmp_path, name="two", parent_thread_id="one")
    found = [{one.session, *one.agents} for one in CodexSessions(tmp_path).find(tmp_path)]

    assert {"one", "two"} == set().union(*found)


def test_a_session_that_grows_is_continued(tmp_path: Path) -> None:
    """What was not complete the first time comes with the next import, and nothing comes twice."""
    path = a_thread(tmp_path, tmp_path, *a_patch(tmp_path))
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[1].replace(b"c1", b"c2")[:50])
    with Relay.open("memory:") as relay:
        first = import_sessions(relay, tmp_path, CodexSessions(tmp_path)).counts
        a_thread(tmp_path, tmp_path, *a_patch(tmp_path), *a_patch(tmp_path, "c2", "b.py"))
        second = import_sessions(relay, tmp_path, CodexSessions(tmp_path)).counts
        relay.verify()

    assert ((1, 1, 0), (1, 1, 0)) == tuple((one.calls, one.changes, one.unread) for one in (first, second))


def test_a_fork_repeats_nothing(tmp_path: Path) -> None:
    """Older versions copy the calls of the original; they are the original's."""
    a_thread(tmp_path, tmp_path, *a_patch(tmp_path), name="one")
    a_thread(tmp_path, tmp_path, *a_patch(tmp_path), *a_patch(tmp_path, "c2", "b.py"), name="two", forked_from_id="one")
    with Relay.open("memory:") as relay:
        counts = import_sessions(relay, tmp_path, CodexSessions(tmp_path)).counts

    assert (2, 2, 2) == (counts.sessions, counts.calls, counts.changes)


def test_a_denied_or_failed_patch_changes_nothing(tmp_path: Path) -> None:
    """A call that was announced, and of which no change is told, made none."""
    asked, _, _ = a_patch(tmp_path)
    told = {"type": "custom_tool_call_output", "call_id": "c1", "output": "Exit code: 0\nSuccess."}
    other = a_patch(tmp_path, "c0", "b.py")
    a_thread(tmp_path, tmp_path, *other, asked, ("response_item", told))
    reader = CodexSessions(tmp_path)
    (files,) = reader.find(tmp_path)
    calls = read_conversation(reader, files, tmp_path).main.calls

    assert [("b.py",), ()] == [tuple(change.path for change in call.changes) for call in calls]


def test_words_of_others_do_not_move_the_cursor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt may hold anything; on a terminal it is only shown."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    (desk.directory / "a.py").write_text("value = compute_everything()\n")
    said = ("event_msg", {"type": "user_message", "message": f"{ESCAPE}Compute it"})
    a_thread(tmp_path, desk.directory, said, *a_patch(desk.directory), name=f"t{ESCAPE}")
    words = desk.words("import", "codex") + desk.words("blame", "a.py:1") + desk.words("trail", "last")

    assert (True, False) == ("Compute it" in words, "\x1b" in words)
