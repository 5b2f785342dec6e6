"""A project without a ledger, and what Claude Code keeps about the work in it, written by hand."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from batonpass.cli.nouns import cli
from tests.unit.accounts.shop import AFTER, BEFORE
from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.desk import Desk


def a_bare_desk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk with one file and without a ledger, and a home without transcripts."""
    project = folder / "shop"
    project.mkdir()
    (project / "a.py").write_text(BEFORE, encoding="utf-8")
    return at_bare_desk(folder, monkeypatch)


def at_bare_desk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk that was made there, and work at it."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder / ".claude"))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder / "shop")
    return Desk(folder / "shop")


def run_without_ledger(desk: Desk, *arguments: str) -> tuple[int, str, str]:
    """Run a command without naming a ledger, where there is none and none is made."""
    done = CliRunner().invoke(cli, list(arguments), prog_name="batonpass")
    assert not desk.ledger.exists()
    return done.exit_code, done.stdout, done.stderr


def an_edit(history: History, words: str = "Shout", task: str = "Fix it") -> None:
    """Let the main conversation and a sub-agent change files of a project, as a transcript tells it."""
    project = history.project
    history.says(task)
    history.uses("c1", "Edit", {"file_path": str(project / "a.py"), "old_string": "x", "new_string": "y"})
    old, new = BEFORE.splitlines(), AFTER.splitlines()
    patch = [
        {
            "oldStart": 1,
            "oldLines": 3,
            "newStart": 1,
            "newLines": 3,
            "lines": [f" {old[0]}", f"-{old[1]}", f"+{new[1]}", f" {old[2]}"],
        },
    ]
    result = {"filePath": str(project / "a.py"), "originalFile": BEFORE, "structuredPatch": patch}
    history.returns("c1", "done", toolUseResult=result)
    (project / "a.py").write_text(AFTER, encoding="utf-8")
    history.uses("c2", "Task", {"description": "d", "prompt": words, "subagent_type": "editor"})
    agent = history.agent("beef")
    history.says(words, agent, isSidechain=True, agentId="beef")
    content = {"file_path": str(project / "b.py"), "content": "written by the sub-agent\n"}
    history.uses("c3", "Write", content, agent, isSidechain=True, agentId="beef")
    history.returns("c3", "File created successfully", agent, isSidechain=True, agentId="beef")
    (project / "b.py").write_text("written by the sub-agent\n", encoding="utf-8")
    history.answers("done", agent, isSidechain=True, agentId="beef")
    history.returns("c2", "done", toolUseResult={"status": "completed", "agentId": "beef"})
