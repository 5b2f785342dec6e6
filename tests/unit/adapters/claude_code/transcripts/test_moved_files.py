"""Files that a shell moved or copied: followed by what the transcript says of the command."""

import pytest

from batonpass.accounts.blame.file_blame import AskedFile, blame_file, read_file
from batonpass.accounts.blame.file_changes import place_of
from batonpass.adapters.claude_code.transcripts.claude_code_sessions import ClaudeCodeSessions
from batonpass.adapters.session_files.conversation import read_conversation
from batonpass.relay import Relay
from tests.unit.adapters.claude_code.histories import History
from tests.unit.adapters.claude_code.imports import bring

TEXT = "alpha = compute(item, 1)\nbeta = compute(item, 2)\n"


def writes(history: History, name: str) -> None:
    path = str(history.project / name)
    given = {"file_path": path, "content": TEXT}
    history.uses("w", "Write", given)
    told: dict[str, object] = {
        "type": "create",
        "filePath": path,
        "content": TEXT,
        "structuredPatch": [],
        "originalFile": None,
    }
    history.returns("w", "File created successfully", toolUseResult=told)


def runs(history: History, command: str, *, ok: bool = True) -> None:
    history.uses("b", "Bash", {"command": command})
    history.returns("b", "", ok=ok)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mv a.py b.py", [("b.py", "a.py")]),
        ("git mv a.py lib/b.py && git commit -m x", [("lib/b.py", "a.py")]),
        ("mkdir -p new && mv a.py new/", [("new/a.py", "a.py")]),
        ("cd lib && mv ../a.py .", [("lib/a.py", "a.py")]),
        ("cp a.py b.py", [("b.py", None)]),
        ("cp other.py b.py", []),
        ("mv a.py b.py || true", []),
        ("mv a.py /tmp/b.py", []),
        ("mv *.py lib/", []),
        ("mv $A b.py", []),
        ("echo mv a.py b.py", []),
    ],
)
def test_a_move_is_followed_and_a_copy_whose_text_is_known(
    history: History, command: str, expected: list[tuple[str, str | None]]
) -> None:
    """As far as the command says what became of which file."""
    (history.project / "lib").mkdir()
    history.says("Go")
    writes(history, "a.py")
    runs(history, command)

    found = read_conversation(ClaudeCodeSessions(), history.transcript(), history.project)

    assert expected == [(change.path, change.renamed_from) for change in found.main.calls[1].changes]


def test_a_command_that_failed_moved_nothing(history: History) -> None:
    """As far as anybody knows."""
    history.says("Go")
    writes(history, "a.py")
    runs(history, "mv a.py b.py", ok=False)

    assert () == read_conversation(ClaudeCodeSessions(), history.transcript(), history.project).main.calls[1].changes


def test_lines_keep_who_wrote_them_through_a_move(relay: Relay, history: History) -> None:
    """And of a copy they are the work of who copied."""
    history.says("Go")
    writes(history, "a.py")
    runs(history, "cp a.py c.py")
    runs(history, "mv a.py b.py")
    for name in ("b.py", "c.py"):
        (history.project / name).write_text(TEXT, encoding="utf-8")
    bring(relay, history)

    told: dict[str, list[str]] = {}
    for name in ("b.py", "c.py"):
        path = history.project / name
        asked = AskedFile(
            place=place_of(path, roots=[history.project]), data=read_file(path), environment={"PATH": "/usr/bin:/bin"}
        )
        with relay.store.view() as view:
            found = blame_file(view, asked)
        told[name] = [found.makers[call].tool for line in found.lines for call in line.calls if line.run is not None]

    assert {"b.py": ["Write", "Write"], "c.py": ["Bash", "Bash"]} == told
