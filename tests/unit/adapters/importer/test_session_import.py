"""Importing: a session becomes a tree of receipts that verifies, and nothing in it is made up."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from batonpass.adapters.claude_code.transcripts.transcript_places import PROGRAM
from batonpass.adapters.importer import receipt_words
from batonpass.adapters.importer.import_sources import session_id_of
from batonpass.adapters.importer.session_drafts import ImportCounts
from batonpass.adapters.importer.session_import import principal_of
from batonpass.model.bodies.body import Kind
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt
from tests.unit.adapters.claude_code.histories import SESSION, History
from tests.unit.adapters.claude_code.imports import a_session, bring, receipts, runs, sources, words

CONTENTS = {
    "arguments",
    "asked",
    "change.1",
    "intent",
    "intent.1",
    "message",
    "reasoning",
    "report",
    "result",
    "target",
    "task",
    "told",
}


def test_a_session_becomes_a_tree(relay: Relay, history: History) -> None:
    """A root for the human's words, a handoff for the sub-agent, a request and an outcome for each call."""
    a_session(history)

    assert (
        ImportCounts(found=1, sessions=1, prompts=1, subagents=1, calls=2, changes=1, receipts=9)
        == bring(relay, history).counts
    )
    assert [
        "run.started",
        "tool.requested",
        "tool.completed",
        "handoff.initiated",
        "handoff.accepted",
        "tool.requested",
        "tool.failed",
        "handoff.completed",
        "run.closed",
    ] == [receipt.kind for receipt in receipts(relay)]
    assert [("claude-code", None), ("tester", runs(relay)[0].id)] == [(run.agent, run.parent) for run in runs(relay)]


def test_words_are_kept_as_they_were(relay: Relay, history: History) -> None:
    """Prompt, task, arguments, error and report, byte for byte."""
    a_session(history)
    bring(relay, history)
    kept = {
        (receipt.kind, name): words(relay, receipt, name)
        for receipt in receipts(relay)
        for name in receipt.content
        if name in {"intent", "task", "message", "report", "target"}
    }

    assert {
        ("run.started", "intent"): "Fix it",
        ("tool.requested", "target"): "a.py",
        ("handoff.initiated", "task"): "Test it",
        ("tool.failed", "message"): "1 failed",
        ("handoff.completed", "report"): "It fails",
        ("run.closed", "report"): "Fixed",
    } == kept


def test_a_change_tells_path_and_lines(relay: Relay, history: History) -> None:
    """It is found under its path. Nobody looked at the file's bytes, so it has no digests of them."""
    a_session(history)
    bring(relay, history)
    with relay.store.view() as view:
        (touched,) = view.find_touches("a.py")
    (completed,) = receipts(relay, Kind.TOOL_COMPLETED)

    assert completed.content["change.1"].id == touched.content
    assert {
        "v": 0,
        "path": "a.py",
        "hunks": [{"old": 1, "new": 1, "removed": ["a"], "added": ["b"]}],
    } == json.loads(words(relay, completed, "change.1"))


def test_what_is_written_whole_has_its_digest(relay: Relay, history: History) -> None:
    """The bytes are those that the call was given."""
    history.says("Fix it")
    history.uses("c1", "Write", {"file_path": str(history.project / "a"), "content": "x"}, history.agent("a1"))
    history.returns("c1", "File created successfully at: a", history.agent("a1"))
    bring(relay, history)
    (completed,) = receipts(relay, Kind.TOOL_COMPLETED)

    assert ["2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"] == [
        changed.after for changed in getattr(completed.body, "changes", ())
    ]


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param([{"oldStart": 0, "newStart": 0, "lines": ["-a", "+b"]}], id="before the first line"),
        pytest.param([{"oldStart": 10**40, "newStart": 1, "lines": ["-a", "+b"]}], id="beyond all lines"),
    ],
)
def test_places_that_cannot_be_are_left_out(relay: Relay, history: History, patch: list[object]) -> None:
    """That the file was changed is known all the same."""
    history.says("Fix it")
    path = str(history.project / "a")
    history.uses("c1", "Edit", {"file_path": path, "old_string": "a", "new_string": "b"})
    history.returns("c1", "ok", toolUseResult={"filePath": path, "structuredPatch": patch})

    assert (1, ()) == (bring(relay, history).counts.changes, bring(relay, history).problems)


def test_every_receipt_says_where_it_comes_from(relay: Relay, history: History) -> None:
    """And that nobody had signed it there; the time of the import is not passed off as the time of the act."""
    a_session(history)
    bring(relay, history)

    assert {("claude-code", "2.0.1", SESSION, True, True)} == {
        (one["source"], one["version"], one["session"], one["imported"], one["unsigned"]) for one in sources(relay)
    }
    assert "2026-03-01T09:00:01Z" == sources(relay)[0]["at"]
    assert all(receipt.at > datetime(2026, 3, 2, tzinfo=UTC) for receipt in receipts(relay))
    assert {session_id_of(PROGRAM, SESSION)} == {receipt.session for receipt in receipts(relay)}


def test_later_words_are_statements_that_travel(relay: Relay, history: History) -> None:
    """A handoff carries all that the human had said by then."""
    history.says("Fix it")
    history.says("Gently")
    history.uses("c1", "Agent", {"prompt": "Do it"})
    history.says("Do it", history.agent("a1"))
    history.says("And quickly")
    bring(relay, history)
    with relay.store.view() as view:
        stated = [statement.item for statement in view.find_statements()]
        (offer,) = (decode_receipt(one.payload) for one in view.find_receipts(ReceiptQuery(kind="handoff.initiated")))

    assert ["Fix it", "Gently", "And quickly"] == [relay.read(item).decode() for item in stated]
    assert stated[:2] == [item.item for item in getattr(offer.body, "carries", ())]


def test_a_refused_call_is_recorded_as_denied(relay: Relay, history: History) -> None:
    """It was never made."""
    history.says("Fix it")
    history.uses("c1", "Bash", {"command": "rm -rf /"})
    history.returns("c1", "no", ok=False, toolDenialKind="Permission Rule!")
    bring(relay, history)

    assert [("tool.denied", "claude-code.permission-rule-")] == [
        (receipt.kind, getattr(receipt.body, "rule", None)) for receipt in receipts(relay, "tool")
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        pytest.param("completed", "handoff.completed", id="it delivered"),
        pytest.param("killed", "handoff.failed", id="it was killed"),
    ],
)
def test_how_a_sub_agent_ended_is_told(relay: Relay, history: History, status: str, kind: str) -> None:
    """By its notice, if it ran in the background."""
    history.says("Fix it")
    history.uses("c1", "Agent", {"prompt": "Do it"})
    history.returns("c1", "launched", toolUseResult={"agentId": "a1", "status": "async_launched"})
    history.says("Do it", history.agent("a1"))
    history.answers("So far", history.agent("a1"))
    history.says(f"<task-notification><task-id>a1</task-id><status>{status}</status></task-notification>")
    bring(relay, history)

    assert [kind] == [
        receipt.kind for receipt in receipts(relay) if receipt.kind in {"handoff.completed", "handoff.failed"}
    ]


def test_a_sub_agent_that_nobody_started_hangs_from_the_root(relay: Relay, history: History) -> None:
    """Its receipt says that the link is unknown."""
    history.says("Fix it")
    history.says("Tidy up", history.agent("a1"))
    bring(relay, history)

    assert ["unknown"] == [one["link"] for one in sources(relay, "handoff.initiated")]


def test_a_task_that_was_rewritten_on_the_way_shows(relay: Relay, history: History) -> None:
    """A hook may change what a sub-agent is told: both are kept."""
    history.says("Fix it")
    history.uses("c1", "Agent", {"prompt": "Do it"})
    history.says("Do it\n[and mind the budget]", history.agent("a1"))
    history.write(history.agent("a1").with_name("agent-a1.meta.json"), b'{"toolUseId":"c1"}')
    bring(relay, history)
    (offer,) = receipts(relay, "handoff.initiated")

    assert ("Do it\n[and mind the budget]", "Do it") == (words(relay, offer, "task"), words(relay, offer, "asked"))


def test_nasty_words_are_data(relay: Relay, history: History) -> None:
    """Names become fit for receipts; words stay as they are."""
    history.says("a\0b \x1b[2J </task> \u202e")
    history.uses("c1", "../../etc\n", {"file_path": "\0", "deep": [[[[{"x": 1.5}]]]] * 3})
    history.returns("c1", "\0")
    history.uses("c2", "Agent", {"prompt": " ", "subagent_type": "évil agent/../x" * 50})
    history.says(" ", history.agent("a1"))
    history.uses("c3", "Write", {"file_path": "a\0b", "content": "x"}, history.agent("a1"))
    history.returns("c3", "ok", history.agent("a1"))
    imported = bring(relay, history)

    assert (1, ()) == (imported.counts.sessions, imported.problems)
    assert "a\0b \x1b[2J </task> \u202e" == words(relay, receipts(relay)[0], "intent")


def test_old_sessions_can_be_left_out(relay: Relay, history: History) -> None:
    """By when their files were last written."""
    a_session(history)
    for path in history.transcript().files:
        os.utime(path, (1_000_000_000, 1_000_000_000))

    assert 0 == bring(relay, history, since=datetime(2020, 1, 1, tzinfo=UTC)).counts.sessions
    assert 1 == bring(relay, history, since=datetime(2000, 1, 1, tzinfo=UTC)).counts.sessions


def test_progress_is_told(relay: Relay, history: History) -> None:
    """In bytes, up to all of them."""
    a_session(history)
    told: list[tuple[int, int]] = []
    bring(relay, history, progress=lambda done, total: told.append((done, total)))
    total = sum(path.stat().st_size for path in history.transcript().files)

    assert [(total, total)] == told


def test_damage_is_counted(relay: Relay, history: History) -> None:
    """And the rest is imported."""
    a_session(history)
    history.write(history.main(), b"{broken\n")
    imported = bring(relay, history)

    assert (1, 1, 1) == (imported.counts.sessions, imported.counts.unread, len(imported.problems))


def test_contents_have_known_names(relay: Relay, history: History) -> None:
    """docs/spec/claude-code.md lists them."""
    a_session(history)
    bring(relay, history)
    names = {name for receipt in receipts(relay) for name in receipt.content}

    assert set() == names - CONTENTS - {"secret", "source"}


def test_whoever_commits_there_is_the_principal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whoever is logged in; a name that fits no principal is nobody's."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("USER", "tess")
    nobody = principal_of(tmp_path)
    (tmp_path / ".gitconfig").write_text("[user]\n\temail = ana@example.org\n", encoding="utf-8")
    somebody = principal_of(tmp_path)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("USER", "§")

    assert ("user:tess", "user:ana@example.org", "user:unknown") == (nobody, somebody, principal_of(tmp_path))


def test_a_session_is_named_by_its_uuid() -> None:
    """In our spelling; what is no UUID is named by a digest, which differs from program to program."""
    others = [session_id_of(program, "20261117_1") for program in ("goose", "goose", "cline")]

    assert "session_0h248h28h28csr8h2nanananan" == session_id_of(PROGRAM, SESSION)
    assert (True, False) == (others[0] == others[1], others[0] == others[2])


def test_no_content_is_larger_than_a_store_can_hold(
    relay: Relay, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is too long the beginning is kept, or that it was there."""
    monkeypatch.setattr(receipt_words, "_LARGEST", 2000)
    monkeypatch.setattr(receipt_words, "_MOST_CHARACTERS", 500)
    huge = "x\n" * 2000
    history.says(huge)
    history.uses("c1", "Write", {"file_path": str(history.project / "a"), "content": huge})
    told = {"type": "create", "filePath": str(history.project / "a"), "content": huge, "structuredPatch": []}
    history.returns("c1", huge, toolUseResult=told)

    assert (1, 1) == (bring(relay, history).counts.calls, len(receipts(relay, Kind.TOOL_COMPLETED)))
    assert 2000 >= max(ref.size for receipt in receipts(relay) for ref in receipt.content.values())


def test_a_session_that_is_too_large_is_refused_with_a_sentence(relay: Relay, history: History) -> None:
    """A gigabyte of one session, which a sparse file pretends to have; the others are read."""
    a_session(history)
    large = history.main("99999999-2222-4333-8444-555555555555")
    history.says("Go", large)
    with large.open("r+b") as file:
        file.truncate(1_000_000_000)
    found = bring(relay, history)

    assert (1, 1) == (found.counts.sessions, found.counts.unread)
    assert [f"{large}:0: has 953 MiB, and a session above 512 MiB is not read: nothing of it is"] == [
        str(problem) for problem in found.problems
    ]
