"""What calls change: by the bytes of the file that they name, by the work tree, and who else may have done it."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import Session, receipts


def changes(relay: Relay, kind: str = "tool.completed") -> list[dict[str, Any]]:
    """Return the changes of all receipts of one kind, as they are kept, with the call that the receipt names."""
    return [
        {**content, "call": one["body"]["call"]}
        for one in receipts(relay, kind)
        for name, content in one["content"].items()
        if name.startswith("change.")
    ]


def a_hunk(old: int, removed: list[str], new: int, added: list[str]) -> dict[str, Any]:
    return {"old": old, "removed": removed, "new": new, "added": added}


def found(change: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(change.get(name) for name in names)


def test_an_edit_is_known_by_the_bytes_before_and_after(session: Session, relay: Relay, project: Path) -> None:
    """Digests of the file's own bytes, whatever its line ends, and the lines that became others."""
    path = project / "a.py"
    session.says("Go")
    session.asks("c1", "Edit", file_path=str(path), old_string="two", new_string="2")
    path.write_bytes(b"one\r\n2\n")
    session.returns("c1", "Edit", {"filePath": str(path)}, file_path=str(path))

    (change,) = changes(relay)
    (completed,) = receipts(relay, "tool.completed")
    with relay.store.view() as view:
        touched = [touch.path for touch in view.find_touches()]
    assert ("a.py", ["a.py"]) == (change["path"], touched)
    assert [{"change": "content-1", "before": "DIGEST", "after": "DIGEST"}] == completed["body"]["changes"]
    assert [a_hunk(2, ["two"], 2, ["2"])] == change["hunks"]


def test_a_new_file_has_no_digest_before(session: Session, relay: Relay, project: Path) -> None:
    """It was not there."""
    session.says("Go")
    session.asks("c1", "Write", file_path="b.py", content="new\n")
    (project / "b.py").write_text("new\n", encoding="utf-8")
    session.returns("c1", "Write", {"type": "create"}, file_path="b.py", content="new\n")

    assert [None] == [one["body"]["changes"][0]["before"] for one in receipts(relay, "tool.completed")]


def test_a_failed_edit_changed_nothing(session: Session, relay: Relay, project: Path) -> None:
    """The file is as it was."""
    path = str(project / "a.py")
    session.says("Go")
    session.asks("c1", "Edit", file_path=path, old_string="x", new_string="y")
    session.fails("c1", "Edit", "String to replace not found", file_path=path)

    assert [] == changes(relay, "tool.failed")


def test_a_command_is_known_by_the_work_tree(session: Session, relay: Relay, project: Path) -> None:
    """`sed -i`, and whatever else it wrote, moved or deleted, is found by comparing."""
    session.says("Go")
    session.asks("c1", "Bash", command="sed -i s/two/three/ a.py; echo x > c.txt")
    (project / "a.py").write_text("one\nthree\n", encoding="utf-8")
    (project / "c.txt").write_text("x\n", encoding="utf-8")
    session.returns("c1", "Bash", {"stdout": ""})

    assert [
        ("a.py", [a_hunk(2, ["two"], 2, ["three"])], None),
        ("c.txt", [a_hunk(0, [], 1, ["x"])], None),
    ] == [found(change, "path", "hunks", "overlapping") for change in changes(relay)]


def test_a_failed_command_may_have_changed_files(session: Session, relay: Relay, project: Path) -> None:
    """What it did before it failed is its work; blame finds it like any other."""
    session.says("Go")
    session.asks("c1", "Bash", command="sed -i s/two/three/ a.py; exit 3")
    (project / "a.py").write_text("one\nthree\n", encoding="utf-8")
    session.fails("c1", "Bash", "Exit code 3", command="sed")

    assert ["a.py"] == [change["path"] for change in changes(relay, "tool.failed")]
    with relay.store.view() as view:
        assert ["a.py"] == [touch.path for touch in view.find_touches()]


def test_readers_change_nothing(session: Session, relay: Relay, project: Path) -> None:
    """What somebody else does while a file is read is not the reader's."""
    session.says("Go")
    session.asks("c1", "Read", file_path="a.py")
    (project / "a.py").write_text("by hand\n", encoding="utf-8")
    session.returns("c1", "Read", "one", file_path="a.py")

    assert [] == changes(relay)


def test_commands_that_overlapped_are_candidates(session: Session, relay: Relay, project: Path) -> None:
    """Both saw the change; each record names the other, and nobody guesses."""
    session.says("Go")
    session.asks("c1", "Bash", command="one")
    session.asks("c2", "Bash", command="other")
    (project / "a.py").write_text("one\nthree\n", encoding="utf-8")
    session.returns("c1", "Bash", "", command="one")
    session.returns("c2", "Bash", "", command="other")

    assert [("a.py", "call-1", ["call-2"]), ("a.py", "call-2", ["call-1"])] == [
        found(change, "path", "call", "overlapping") for change in changes(relay)
    ]


def test_an_edit_during_a_command_is_the_edits(session: Session, relay: Relay, project: Path) -> None:
    """Its bytes before and after are known, so the command does not share it; what else changed is the command's."""
    path = str(project / "a.py")
    session.says("Go")
    session.asks("c1", "Bash", command="echo x > c.txt")
    session.asks("c2", "Edit", file_path=path, old_string="two", new_string="2")
    (project / "a.py").write_text("one\n2\n", encoding="utf-8")
    (project / "c.txt").write_text("x\n", encoding="utf-8")
    session.returns("c2", "Edit", {}, file_path=path)
    session.returns("c1", "Bash", "")

    assert [("a.py", "call-2", None), ("c.txt", "call-1", None)] == [
        found(change, "path", "call", "overlapping") for change in changes(relay)
    ]


def test_an_edit_that_is_not_over_is_a_candidate_for_its_file_alone(
    session: Session, relay: Relay, project: Path
) -> None:
    """The command ends before the edit says what it did."""
    path = str(project / "a.py")
    session.says("Go")
    session.asks("c1", "Bash", command="echo x > c.txt")
    session.asks("c2", "Edit", file_path=path, old_string="two", new_string="2")
    (project / "a.py").write_text("one\n2\n", encoding="utf-8")
    (project / "c.txt").write_text("x\n", encoding="utf-8")
    session.returns("c1", "Bash", "")
    session.returns("c2", "Edit", {}, file_path=path)

    assert [("a.py", "call-1", ["call-2"]), ("c.txt", "call-1", None), ("a.py", "call-2", None)] == [
        found(change, "path", "call", "overlapping") for change in changes(relay)
    ]


def test_a_command_in_the_background_is_a_candidate_until_it_ends(
    session: Session, relay: Relay, project: Path
) -> None:
    """It returns at once; what is found later may be its work, and what it did after that is recorded at its end."""
    session.says("Go")
    session.asks("c1", "Bash", command="slow", run_in_background=True)
    session.returns("c1", "Bash", {"backgroundTaskId": "b1"}, command="slow")
    session.asks("c2", "Bash", command="quick")
    (project / "a.py").write_text("one\nthree\n", encoding="utf-8")
    session.returns("c2", "Bash", "", command="quick")
    notice = "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>c1</tool-use-id>\n<status>completed</status>"
    session.says(notice, "p2")
    session.asks("c3", "Bash", command="later")
    (project / "c.txt").write_text("x\n", encoding="utf-8")
    session.returns("c3", "Bash", "", command="later")

    assert [("a.py", "call-2", ["call-1"]), ("a.py", "call-3", ["call-2"]), ("c.txt", "call-4", None)] == [
        found(change, "path", "call", "overlapping") for change in changes(relay)
    ]
    assert ["c1", "c2", "c1/background", "c3"] == [
        one["content"]["source"]["key"] for one in receipts(relay, "tool.requested")
    ]


def test_a_background_command_that_nobody_ends_is_ended_with_the_session(
    session: Session, relay: Relay, project: Path
) -> None:
    """Its changes are not lost."""
    session.says("Go")
    session.asks("c1", "Bash", command="slow", run_in_background=True)
    session.returns("c1", "Bash", {"backgroundTaskId": "b1"}, command="slow")
    (project / "c.txt").write_text("x\n", encoding="utf-8")
    session.tell("SessionEnd", reason="other")

    assert [("c.txt", "call-2", None)] == [found(change, "path", "call", "overlapping") for change in changes(relay)]


def test_after_a_restart_an_edit_is_known_by_its_result(
    session: Session, relay: Relay, project: Path, record: Callable[[], HookRecorder]
) -> None:
    """Nobody has the bytes before: what the call says that it did is recorded, without digests."""
    path = str(project / "a.py")
    patch = [{"oldStart": 1, "newStart": 1, "lines": [" one", "-two", "+2"]}]
    session.says("Go")
    session.asks("c1", "Edit", file_path=path, old_string="two", new_string="2")
    session.recorder = record()
    session.returns(
        "c1", "Edit", {"filePath": path, "originalFile": "one\ntwo\n", "structuredPatch": patch}, file_path=path
    )

    (change,) = changes(relay)
    assert ("a.py", None, None) == found(change, "path", "before", "after")
    assert [a_hunk(1, ["one", "two"], 1, ["one", "2"])] == change["hunks"]


def test_after_a_restart_what_a_command_changed_is_not_known(
    session: Session, relay: Relay, project: Path, record: Callable[[], HookRecorder]
) -> None:
    """Its outcome says so; and for the calls that began since, it is a candidate."""
    session.says("Go")
    session.asks("c1", "Bash", command="one")
    session.recorder = record()
    session.asks("c2", "Bash", command="other")
    (project / "a.py").write_text("one\nthree\n", encoding="utf-8")
    session.returns("c1", "Bash", "", command="one")
    session.returns("c2", "Bash", "", command="other")

    assert [["changes.unseen"], []] == [one["body"]["flags"] for one in receipts(relay, "tool.completed")]
    assert [("a.py", "call-2", ["call-1"])] == [
        found(change, "path", "call", "overlapping") for change in changes(relay)
    ]


def test_a_file_outside_of_the_project_is_known_by_the_result(session: Session, relay: Relay, tmp_path: Path) -> None:
    """It is not part of the work tree, and was changed all the same."""
    path = str(tmp_path / "elsewhere.txt")
    session.says("Go")
    session.asks("c1", "Write", file_path=path, content="x\n")
    session.returns(
        "c1", "Write", {"type": "create", "filePath": path, "content": "x\n"}, file_path=path, content="x\n"
    )

    assert [path] == [change["path"] for change in changes(relay)]


def test_a_link_is_followed_to_the_file(session: Session, relay: Relay, project: Path) -> None:
    """An edit through a link changes what it leads to."""
    (project / "link.py").symlink_to("a.py")
    session.says("Go")
    session.asks("c1", "Edit", file_path="link.py", old_string="two", new_string="2")
    (project / "a.py").write_text("one\n2\n", encoding="utf-8")
    session.returns("c1", "Edit", {}, file_path="link.py")

    assert ["a.py"] == [change["path"] for change in changes(relay)]


def test_what_a_refused_call_did_not_do_is_nobodys(session: Session, relay: Relay, project: Path) -> None:
    """Once the transcript says that a command was never made, it is no candidate any more."""
    session.says("Go")
    session.asks("c1", "Bash", command="rm a.py")
    block = {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "No."}
    line = {"type": "user", "toolDenialKind": "user-rejected", "message": {"role": "user", "content": [block]}}
    session.keep(session.transcript.name, line)
    session.tell("Stop", last_assistant_message="All right.")
    session.asks("c2", "Bash", command="sed")
    (project / "a.py").write_text("one\nthree\n", encoding="utf-8")
    session.returns("c2", "Bash", "", command="sed")

    assert [("a.py", "call-2", None)] == [found(change, "path", "call", "overlapping") for change in changes(relay)]


def test_a_project_below_the_repository_has_paths_from_its_root(relay: Relay, project: Path) -> None:
    """Lines are asked for by where they are in the repository."""
    inner = project / "inner"
    inner.mkdir()
    subprocess.run(["git", "config", "user.email", "ana@example.org"], cwd=project, check=True)
    recorder = HookRecorder(relay, inner)
    session = Session(inner, recorder)
    session.says("Go")
    session.asks("c1", "Write", file_path=str(inner / "b.py"), content="x\n")
    (inner / "b.py").write_text("x\n", encoding="utf-8")
    session.returns("c1", "Write", {}, file_path=str(inner / "b.py"))
    recorder.close()

    assert ["inner/b.py"] == [change["path"] for change in changes(relay)]
    assert "user:ana@example.org" == receipts(relay, "run.started")[0]["body"]["principal"]


def test_the_model_of_a_change_is_the_one_in_the_transcript(session: Session, relay: Relay, project: Path) -> None:
    """Hooks of Claude Code do not tell it, and a user may change it; for what changed nothing it is not read."""
    session.says("Go")
    for call, model in (("c1", "claude-opus-5"), ("c2", "claude-haiku-5"), ("c3", "claude-haiku-5")):
        block = {"type": "tool_use", "id": call, "name": "Edit", "input": {}}
        message = {"role": "assistant", "model": model, "content": [block]}
        session.keep(session.transcript.name, {"type": "assistant", "message": message})
        session.asks(call, "Edit", file_path="a.py", old_string="x", new_string="y")
        if call != "c3":
            (project / "a.py").write_text(f"one\n{call}\n", encoding="utf-8")
        session.returns(call, "Edit", {}, file_path="a.py")

    sources = [one["content"]["source"] for one in receipts(relay, "tool.completed")]
    assert ["claude-opus-5", "claude-haiku-5", None] == [source.get("model") for source in sources]
