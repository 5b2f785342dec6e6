"""What is known about lines, written for git-ai and Agent Trace, and read again as they read it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from batonpass.cli.nouns import cli
from batonpass.notes.foreign.authorship_log import read_authorship
from batonpass.relay import Relay
from tests.attribution.repository import git

WHO = ("-c", "user.name=Ben", "-c", "user.email=ben@example.org")


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the commits of a person and of an agent, the latest last; all of the agent's is recorded."""
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "shop"
    root.mkdir()
    monkeypatch.chdir(root)
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / ".gitignore").write_text(".batonpass\n", encoding="utf-8")
    (root / "a b.py").write_text("by hand\n", encoding="utf-8")
    made = [commit("Begin")]

    def write_file(path: str, text: str) -> None:
        Path(path).write_text(text, encoding="utf-8")

    with (
        Relay.open(f"sqlite:///{root}/.batonpass/ledger.db", work_tree=root) as relay,
        relay.start("Add", by="user:ana") as lead,
        lead.hand_off("editor", "Add lines") as editor,
    ):
        editor.call(write_file, "a b.py", "one\nby hand\ntwo\n")
    made.append(commit("Add"))
    return made


def commit(message: str) -> str:
    """Commit everything and return the commit."""
    git(Path(), "add", "--all")
    git(Path(), *WHO, "commit", "--quiet", f"--message={message}")
    return git(Path(), "rev-parse", "HEAD").strip()


def run(*words: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = CliRunner().invoke(cli, list(words), prog_name="batonpass")
    assert (0, None) == (done.exit_code, done.exception), done.output
    return done.stdout


def test_git_ai_reads_what_is_known_of_a_commit(commits: list[str]) -> None:
    """Only the agent's lines; of a commit that nothing is known of there is no note, and git shows what is there."""
    said = run("git", "export", "--git-ai", "HEAD~1..HEAD")
    shown = git(Path(), "notes", "--ref=ai", "show", commits[1])
    log = read_authorship(shown.encode(), commits[1])

    assert "refs/notes/ai: 1 note written\n" == said
    assert {1, 3} == set(log.of("a b.py", range(1, 9)))
    assert [("editor", "unknown", "ana")] * 2 == [
        (one.by, one.model, one.human) for one in log.of("a b.py", range(1, 9)).values()
    ]
    assert commits[1] == git(Path(), "notes", "--ref=ai", "list").split()[1]


def test_a_note_that_is_there_stays(commits: list[str]) -> None:
    """It is git-ai's own, or somebody has looked at it."""
    git(Path(), *WHO, "notes", "--ref=ai", "add", "--message=theirs", commits[1])
    first = json.loads(run("git", "export", "--git-ai", "--json"))
    again = run("git", "export", "--git-ai")

    assert {"ref": "refs/notes/ai", "written": [], "kept": [commits[1]]} == first
    assert "refs/notes/ai: 0 notes written, 1 had one\n" == again
    assert "theirs\n" == git(Path(), "notes", "--ref=ai", "show", commits[1])


def test_agent_trace_is_printed_a_record_for_each_commit(commits: list[str]) -> None:
    """The commit and its lines, without a model where none is known."""
    (record,) = map(json.loads, run("git", "export", "--agent-trace", "HEAD~1..HEAD").splitlines())
    (said,) = record["files"][0]["conversations"]

    assert {"type": "git", "revision": commits[1]} == record["vcs"]
    assert [{"start_line": 1, "end_line": 1}, {"start_line": 3, "end_line": 3}] == said["ranges"]
    assert {"type": "ai"} == said["contributor"]
    (run_facts,) = record["metadata"]["dev.batonpass"]["runs"].values()
    assert {"agent": "editor", "for": "user:ana"} == run_facts


@pytest.mark.usefixtures("commits")
def test_what_we_wrote_for_others_is_hearsay_when_it_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a clone without notes of ours, nobody signed it."""
    run("git", "export", "--git-ai")
    git(Path(), "clone", "--quiet", ".", "../clone")
    git(Path("../clone"), "fetch", "--quiet", "origin", "refs/notes/ai:refs/notes/ai")
    monkeypatch.chdir("../clone")
    answer = json.loads(run("blame", "a b.py:1", "--json"))

    assert ("unexplained", "git-ai", "editor") == (
        answer["lines"][0]["known"],
        answer["lines"][0]["said"][0]["source"],
        answer["lines"][0]["said"][0]["by"],
    )


@pytest.mark.usefixtures("commits")
def test_one_format_is_asked_for() -> None:
    """Neither is the usual one."""
    assert 2 == CliRunner().invoke(cli, ["git", "export"]).exit_code
    assert 2 == CliRunner().invoke(cli, ["git", "export", "--git-ai", "--agent-trace"]).exit_code
