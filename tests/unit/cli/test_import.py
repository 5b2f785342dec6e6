"""`batonpass import`: what it says, and to whom."""

import json
from pathlib import Path

import pytest

from tests.unit.adapters.claude_code.histories import History
from tests.unit.cli.desk import Desk


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Return what Claude Code keeps about a project: one prompt and one call."""
    project = tmp_path / "shop"
    project.mkdir()
    history = History(tmp_path, project)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(history.config))
    monkeypatch.setenv("HOME", str(tmp_path))
    history.says("Fix it")
    history.uses("c1", "Bash", {"command": "make"})
    history.returns("c1", "made")
    return history


@pytest.fixture
def bare(tmp_path: Path) -> Desk:
    """Return a desk without a ledger."""
    return Desk(tmp_path)


def test_the_first_time_makes_a_ledger(bare: Desk, history: History) -> None:
    """Nothing has to be set up."""
    said = bare.words("import", "claude-code", "--project", str(history.project))

    assert "imported 1 session of 1: 1 prompt, 0 sub-agents, 1 call, 0 changes to files\n" == said
    assert "made" in bare.words("receipt", "grep", "made")


def test_the_second_time_says_that_nothing_is_new(bare: Desk, history: History) -> None:
    """And that it has looked."""
    bare.words("import", "claude-code", "--project", str(history.project))

    assert "nothing new in 1 session\n" == bare.words("import", "claude-code", "--project", str(history.project))


def test_here_is_the_project_unless_told(bare: Desk, history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """As people start it."""
    monkeypatch.chdir(history.project)

    assert bare.words("import", "claude-code").startswith("imported 1 session")


def test_programs_get_numbers(bare: Desk, history: History) -> None:
    """And every problem with its place."""
    history.write(history.main(), b"{broken\n")
    answer = bare.answer("import", "claude-code", "--project", str(history.project))

    assert {
        "found": 1,
        "sessions": 1,
        "prompts": 1,
        "subagents": 0,
        "calls": 1,
        "changes": 0,
        "receipts": 4,
        "unread": 1,
        "problems": [{"path": str(history.main()), "line": 4, "problem": "is not JSON"}],
    } == answer


def test_damage_is_told_on_stderr(bare: Desk, history: History) -> None:
    """The first of it; the rest is counted."""
    history.write(history.main(), b"{broken\n" * 12)
    done = bare.run("import", "claude-code", "--project", str(history.project))

    assert (0, 11) == (done.exit_code, len(done.stderr.splitlines()))
    assert f"skipped {history.main()}:4: is not JSON" == done.stderr.splitlines()[0]
    assert "and 2 more; --json lists them" == done.stderr.splitlines()[-1]


def test_where_nobody_worked_nothing_is_made(bare: Desk, history: History, tmp_path: Path) -> None:
    """The answer is no, and says where was looked."""
    done = bare.run("import", "claude-code", "--project", str(tmp_path / ".claude"))

    assert (1, "") == (done.exit_code, done.stdout)
    assert f"no session of {tmp_path / '.claude'} found in {history.config / 'projects'}\n" == done.stderr
    assert not bare.ledger.exists()


def test_where_nobody_worked_programs_get_zeros(bare: Desk, history: History) -> None:
    """In the same shape."""
    done = bare.run("import", "claude-code", "--project", str(history.config), "--json")

    assert (1, 0) == (done.exit_code, json.loads(done.stdout)["found"])


def test_sessions_can_be_left_out_by_time(bare: Desk, history: History) -> None:
    """Those that ended before."""
    said = bare.words("import", "claude-code", "--project", str(history.project), "--since", "2999-01-01")

    assert "nothing new in 1 session\n" == said
