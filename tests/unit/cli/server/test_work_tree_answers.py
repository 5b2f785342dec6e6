"""Blame and review for MCP clients: the answers of the command line, and no file that is not theirs to see."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from batonpass.cli.server.work_tree_answers import WorkTreeAnswers
from batonpass.demo import pull_request
from batonpass.errors import BatonpassError, InvalidValueError
from batonpass.relay import Relay


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play the story of a pull request once; beside it are files of nobody, and one outside."""
    place = tmp_path_factory.mktemp("work") / "project"
    place.mkdir()
    list(pull_request.play(place))
    (place / ".env").write_text("TOKEN=secret\n")
    (place.parent / "outside.txt").write_text("secret\n")
    (place / "link.txt").symlink_to(place.parent / "outside.txt")
    return place


@pytest.fixture
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in the project, as the command does."""
    monkeypatch.chdir(project)
    with click.Context(click.Command("mcp")):
        yield project


def test_a_line_has_its_agent(here: Path) -> None:  # noqa: ARG001 - where it stands
    """Also in a thread that knows nothing of the command."""
    answers = WorkTreeAnswers(only_known=True)
    told = []
    thread = threading.Thread(target=lambda: told.append(answers.blame("src/invoice.py:6")))
    thread.start()
    thread.join()

    assert (True, True) == ("tidier" in "\n".join(told[0].lines), "makers" in told[0].facts)


def test_a_pull_request_has_its_hunks_and_its_review(here: Path) -> None:  # noqa: ARG001 - as above
    """As a blame of each hunk, as a review, and the runs behind it as one too."""
    answers = WorkTreeAnswers(only_known=True)
    blamed, reviewed, run = answers.blame("HEAD"), answers.review_diff("HEAD"), answers.review(None)

    assert (True, True) == (bool(blamed.facts["hunks"]), "fixer" in "\n".join(blamed.lines + reviewed.lines))
    assert ("works" in reviewed.facts, "trees" in run.facts) == (True, True)


OUTSIDE = ["../outside.txt", "link.txt", "/etc/passwd:1", ".batonpass/ledger.db", "../outside.txt:1"]


@pytest.mark.parametrize("where", OUTSIDE)
@pytest.mark.parametrize("only_known", [True, False])
def test_what_is_outside_or_the_ledgers_own_is_refused(here: Path, where: str, only_known: bool) -> None:  # noqa: ARG001, FBT001 - as above
    """By another name, by a link, by a path from the root, and in the ledger's directory."""
    with pytest.raises(InvalidValueError, match="not a file of this project"):
        WorkTreeAnswers(only_known=only_known).blame(where)


def test_a_file_that_nobody_recorded_is_not_shown_to_others(here: Path) -> None:
    """Over a network: neither git nor the ledger knows it. The user of this machine may ask."""
    with pytest.raises(InvalidValueError, match="neither git nor the ledger knows"):
        WorkTreeAnswers(only_known=True).blame(".env")
    with Relay.open(here / ".batonpass" / "ledger.db") as relay:
        assert relay.store.founded()

    assert WorkTreeAnswers(only_known=False).blame(".env").facts["lines"]


@pytest.mark.parametrize(
    "span", ["--output=x", "no-such-commit", "..", "/etc", "src", "-h", "HEAD..no-such-commit", ""]
)
def test_what_is_no_commit_is_refused(here: Path, span: str) -> None:
    """Neither a directory nor an option of git is one, and nothing is written."""
    before = subprocess.run(["git", "status", "--short"], capture_output=True, check=True).stdout
    with pytest.raises(BatonpassError):
        WorkTreeAnswers(only_known=True).review_diff(span)

    assert (before, False) == (
        subprocess.run(["git", "status", "--short"], capture_output=True, check=True).stdout,
        (here / "x").exists(),
    )
