"""`batonpass import`: which agents have kept sessions here, what of them is new, and what is recorded."""

import shutil
from pathlib import Path

import pytest

from tests.unit.adapters.claude_code.histories import History
from tests.unit.adapters.session_files.recorded_sessions import AGENTS, restore
from tests.unit.cli.desk import Desk
from tests.unit.cli.transcripts import a_bare_desk, an_edit, run_without_ledger

CODEX = next(agent for agent in AGENTS if agent.reader.program == "codex")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk in a project of which Claude Code and Codex have kept a session each."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    home, project = restore(CODEX, tmp_path / "codex")
    shutil.rmtree(desk.directory)
    project.rename(desk.directory)
    for path in home.rglob("rollout-*"):
        path.write_text(path.read_text().replace(str(project), str(desk.directory)))
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    monkeypatch.chdir(desk.directory)
    an_edit(History(tmp_path, desk.directory))
    return desk


def test_who_has_kept_sessions_is_listed(desk: Desk) -> None:
    """One line each, with the command that records them; and the same for programs."""
    said = desk.words("import").splitlines()
    told = desk.answer("import")

    assert ["claude-code", "codex"] == [line.rpartition(" ")[2] for line in said[1:]]
    assert [("claude-code", 1), ("codex", 1)] == [(one["name"], one["sessions"]) for one in told]


def test_a_dry_run_says_what_is_new_and_records_nothing(desk: Desk) -> None:
    """Also where there is no ledger: then none is made."""
    foreseen = desk.words("import", "codex", "--dry-run")
    made = list(desk.directory.rglob("ledger.db"))
    done = desk.words("import", "codex")
    after = desk.words("import", "codex", "--dry-run")

    assert (foreseen.replace("would import", "imported"), []) == (done, made)
    assert "nothing new in 1 session" in after


def test_where_nobody_worked_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With those who were looked for, and the exit code of no."""
    desk = a_bare_desk(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    code, _, err = run_without_ledger(desk, "import")

    assert (1, True) == (code, "looked for those of Claude Code, Codex, Copilot CLI" in err)


def test_blame_without_a_ledger_says_whose_sessions_it_read(desk: Desk) -> None:
    """Of every agent that kept some of this repository, how many it read."""
    code, _, err = run_without_ledger(desk, "blame", "src/invoice.py:5")

    assert (0, True) == (code, "1 session that Claude Code keeps and 1 transcript of 1 session that Codex keeps" in err)
