"""The model that wrote a line, in a note, and in a clone that has nothing else."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from batonpass.cli.nouns import cli
from tests.unit.adapters.session_files.recorded_sessions import AGENTS, git, restore


def run(*words: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = CliRunner().invoke(cli, list(words), prog_name="batonpass")
    assert (0, None) == (done.exit_code, done.exception), done.output
    return done.stdout


def test_a_clone_knows_the_program_and_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the session of Codex told them, for the main conversation and its sub-agent."""
    home, project = restore(AGENTS[0], tmp_path)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(project)
    run("import", "codex")
    git(project, "add", "src")
    git(project, "commit", "-q", "-m", "work")
    run("git", "note")
    git(tmp_path, "clone", "--quiet", "shop", "clone")
    git(tmp_path / "clone", "fetch", "--quiet", "origin", "refs/notes/*:refs/notes/*")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "clone")
    found = [json.loads(run("blame", f"src/{name}", "--json")) for name in ("vat.py", "discount.py")]
    noted = [maker["noted"] for answer in found for maker in answer["makers"].values()]

    assert {("codex", "gpt-5.5")} == {(one["program"], one["model"]) for one in noted}
    assert " · by gpt-5.5 · " in run("blame", "src/vat.py:1")
