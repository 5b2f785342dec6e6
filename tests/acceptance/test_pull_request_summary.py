"""The sum of a pull request: who wrote its lines, as a command, as a comment, and by the action of the examples."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from batonpass.relay import Relay
from tests.unit.accounts.shop import ANA

ACTION: Final = Path(__file__).parents[2] / "examples" / "github-action"
PROGRAM: Final = str(Path(sys.executable).with_name("batonpass"))
HOSTILE: Final = "mallory @ana #1 `x` | [l](http://evil.example) <img src=x>"


def write_file(path: str, text: str) -> None:
    """Write a file, as an agent's tool does."""
    Path(path).write_text(text, encoding="utf-8")


def git(*arguments: str, who: str = "Ben") -> str:
    """Run git here."""
    name = ("-c", f"user.name={who}", "-c", "user.email=ben@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *name, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a repository with a branch of three agents' lines and two people's, and return where it began."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BATONPASS_LEDGER", raising=False)
    monkeypatch.chdir(work)
    git("init", "-q", "--initial-branch=main")
    Path("a.py").write_text("old 1\nold 2\n", encoding="utf-8")
    git("add", "a.py")
    git("commit", "-qm", "Base")
    base = git("rev-parse", "HEAD")
    with Relay.open(f"sqlite:///{work}/.batonpass/ledger.db") as relay, relay.start("Fix", by=ANA) as lead:
        handoff = lead.hand_off("editor", "Edit")
        with handoff as editor:
            editor.call(write_file, "a.py", "new 1\nnew 2\nnew 3\nold 2\n")
            editor.report("done")
        handoff.verify(verdict="read all of it against the tax tables", by=ANA)
        with lead.hand_off("fixer", "Fix") as fixer:
            fixer.call(write_file, "b.py", "fixed\n")
    git("add", "a.py", "b.py")
    git("commit", "-qm", "Agents")
    Path("c.py").write_text("by hand\nby hand too\n", encoding="utf-8")
    git("add", "c.py")
    git("commit", "-qm", "People", who=HOSTILE)
    return base


def summary(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run([PROGRAM, "git", "summary", *arguments], check=False, capture_output=True, text=True)


@pytest.mark.slow
def test_lines_are_counted_by_author(base: str) -> None:
    """Agents with their human, verified or not, and whom only git names; every added line once."""
    told = json.loads(summary(f"{base}..HEAD", "--json").stdout)
    rows = {one["name"]: (one["kind"], one["for"], one["lines"], one["verified"]) for one in told["authors"]}

    assert {
        "editor": ("agent", "user:ana", 3, 3),
        "fixer": ("agent", "user:ana", 1, 0),
        HOSTILE.replace("<", "").replace(">", ""): ("committed", None, 2, 0),
    } == rows
    assert (6, 1, 3, 4, 3, 2, 0) == tuple(
        told[name] for name in ("added", "removed", "files", "by_agents", "verified", "unexplained", "approved")
    )


@pytest.mark.slow
def test_people_get_a_sentence_and_a_table(base: str) -> None:
    """In a terminal; a commit alone is summed up too, and what is no commit is refused."""
    told = summary(f"{base}...HEAD").stdout.splitlines()

    assert "6 lines added: 4 by agents, 2 unexplained · 1 removed · 3 files" == told[0]
    assert [["author", "for", "lines", "verified", "approved"], ["editor", "ana", "3", "3", "0"]] == [
        row.split() for row in told[1:3]
    ]
    assert "2 lines added: 2 unexplained" in summary("HEAD").stdout
    assert [2, 2, 1] == [summary(what).returncode for what in ("no-such-commit", ".", "x..HEAD")]


@pytest.mark.slow
def test_a_comment_has_nothing_live_of_others(base: str) -> None:
    """Names are code: nobody is called, no issue is named, no cell is broken."""
    told = summary(f"{base}..HEAD", "--md").stdout
    rows = [line for line in told.splitlines() if line.startswith("| `")]

    assert (3, {6}) == (len(rows), {row.count("|") for row in rows})
    outside = re.sub(r"`[^`\n]*`", "", told.partition("-->")[2])
    assert [] == re.findall(r"[@<\[`]|#\d|http", outside)


@pytest.mark.slow
def test_a_clone_where_nothing_is_recorded_is_summed_up_by_git(base: str, tmp_path: Path) -> None:
    """Every line is unexplained, and git's authors are named; nothing is made."""
    git("clone", "-q", ".", str(tmp_path / "clone"))
    os.chdir(tmp_path / "clone")
    told = json.loads(summary(f"{base}..HEAD", "--json").stdout)

    assert (6, 6, {"committed"}) == (told["added"], told["unexplained"], {one["kind"] for one in told["authors"]})
    assert not Path(".batonpass").exists()


@pytest.mark.slow
def test_a_clone_is_told_by_notes(base: str, tmp_path: Path) -> None:
    """By a key that nobody vouches for it is hearsay, and nothing counts as verified."""
    subprocess.run([PROGRAM, "git", "note", f"{base}..HEAD"], check=True, capture_output=True)
    git("clone", "-q", ".", str(tmp_path / "clone"))
    os.chdir(tmp_path / "clone")
    git("fetch", "-q", "origin", "+refs/notes/*:refs/notes/*")
    told = json.loads(summary(f"{base}..HEAD", "--json").stdout)
    printed = subprocess.run(
        [PROGRAM, "blame", "a.py", "--porcelain"], check=True, capture_output=True, text=True
    ).stdout

    assert (6, 0, 4, 2, 0) == tuple(told[name] for name in ("added", "by_agents", "hearsay", "unexplained", "verified"))
    assert {"editor (hearsay)", "Ben"} == set(re.findall(r"^author (.+)$", printed, re.MULTILINE))


@pytest.mark.slow
def test_editors_are_told_by_git_where_nothing_is_recorded(base: str, tmp_path: Path) -> None:
    """With the format that they read, as git would; without it, it is said that nothing is recorded."""
    git("clone", "-q", ".", str(tmp_path / "clone"))
    os.chdir(tmp_path / "clone")
    ours, listed = (
        subprocess.run([PROGRAM, "blame", "a.py", *more], check=False, capture_output=True, text=True)
        for more in (("--porcelain",), ())
    )

    assert (0, 3) == (ours.returncode, listed.returncode)
    assert (
        git("blame", "--porcelain", "a.py") == re.sub(r"^batonpass-.*\n", "", ours.stdout, flags=re.MULTILINE).strip()
    )
    assert base


@pytest.mark.slow
def test_a_ledger_of_the_pull_request_is_not_asked(base: str) -> None:
    """Whoever makes the commits would make the answer; named by the reader, it is asked."""
    git("add", "-f", ".batonpass/ledger.db")
    git("commit", "-qm", "Trust me")
    refused = summary(f"{base}..HEAD", "--json")
    named = summary(f"{base}..HEAD", "--ledger", ".batonpass/ledger.db")

    assert (3, "store.foreign", 0) == (
        refused.returncode,
        json.loads(refused.stdout)["error"]["code"],
        named.returncode,
    )


def action() -> Any:  # noqa: ANN401 - what YAML holds
    """Return the action of the examples."""
    return yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))


def test_no_word_from_outside_is_part_of_a_script() -> None:
    """Titles and branch names come in by variables; each step names its shell; the workflow uses this action."""
    steps = action()["runs"]["steps"]
    workflow = yaml.safe_load((ACTION / "workflow.yml").read_text(encoding="utf-8"))

    assert "composite" == action()["runs"]["using"]
    assert [("bash", False)] * 4 == [(step["shell"], "${{" in step["run"]) for step in steps]
    assert "pull_request" == workflow[True]  # YAML reads `on` as true
    assert {"contents": "read", "pull-requests": "write"} == workflow["permissions"]


@pytest.mark.slow
@pytest.mark.parametrize("known", ["", "77"], ids=["a first comment", "a comment to bring up to date"])
def test_the_steps_of_the_action_run(base: str, tmp_path: Path, known: str) -> None:
    """In the order of the action, as a runner does: a summary of the job, outputs, and one comment."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "batonpass").symlink_to(PROGRAM)
    (tools / "gh").write_text(
        f'#!/bin/sh\necho "$*" >> "$RUNNER_TEMP/gh.log"\ncase "$*" in *--paginate*) echo "{known}" ;; esac\n',
        encoding="utf-8",
    )
    (tools / "gh").chmod(0o755)
    outside = {
        "RANGE": f"{base}...HEAD",
        "PACKAGE": "batonpass",
        "NUMBER": "5",
        "GH_TOKEN": "t",
        "GITHUB_REPOSITORY": "ana/shop",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "RUNNER_TEMP": str(tmp_path),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    for step in action()["runs"]["steps"]:
        wanted = {name: outside[name] for name in step.get("env", {})}
        runner = {name: value for name, value in outside.items() if name.startswith(("GITHUB_", "RUNNER_", "PATH"))}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        subprocess.run(command, env={**os.environ, **runner, **wanted}, check=True, capture_output=True)

    said = (tmp_path / "gh.log").read_text(encoding="utf-8").splitlines()
    method = "PATCH repos/ana/shop/issues/comments/77" if known else "POST repos/ana/shop/issues/5/comments"
    assert (2, True) == (len(said), f"--method {method} --field body=@{tmp_path}/batonpass-summary.md" in said[1])
    assert "6 lines added: 4 by agents, 2 unexplained" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    told = dict(line.split("=", 1) for line in (tmp_path / "output").read_text(encoding="utf-8").splitlines())
    results = json.loads(Path(told["sarif"]).read_text(encoding="utf-8"))["runs"][0]["results"]
    assert ("2", str(len(results))) == (told["unexplained"], told["findings"])
    assert told["json"] == f"{tmp_path}/batonpass-summary.json"
