"""`batonpass worker`: which app, what is printed, and how it leaves."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from batonpass.cli.nouns import cli
from batonpass.model.base.lifecycle import Carrier, State
from batonpass.relay import Relay

APP = """
from pathlib import Path
from batonpass.aio import AsyncRelay
from batonpass.relay import Relay

LEDGER = f"sqlite:///{Path(__file__).parent / 'ledger.db'}"

def editor(run):
    return f"did: {run.task}"

def failing(run):
    raise ConnectionError("the model is overloaded. Try again later")

def unlucky():
    relay = Relay.open(LEDGER)
    relay.register("editor", failing)
    return relay

def lazy():
    relay = Relay.open(LEDGER)
    relay.register("editor", editor)
    return relay

class Apps:
    relay = staticmethod(lazy)

def both():
    return AsyncRelay(lazy())

def idle():
    return Relay.open("memory:")

def broken():
    raise KeyError("no settings")

answer = 42
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a directory with an app in it, and be there."""
    (tmp_path / "app_of_test.py").write_text(dedent(APP), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("app_of_test", None)


def work(*arguments: str, app: str = "app_of_test:lazy") -> Result:
    return CliRunner().invoke(cli, ["worker", "--app", app, "--once", *arguments], prog_name="batonpass")


def offer(folder: Path, *tasks: str) -> None:
    with Relay.open(f"sqlite:///{folder / 'ledger.db'}") as relay:
        lead = relay.start("Fix invoice rounding", by="user:ana")
        for task in tasks:
            lead.hand_off("editor", task, carrier=Carrier.WORKER)


def states(folder: Path) -> list[State]:
    with Relay.open(f"sqlite:///{folder / 'ledger.db'}") as relay, relay.store.view() as view:
        return sorted(handoff.state for handoff in view.find_handoffs())


@pytest.mark.parametrize(
    "app",
    [
        pytest.param("app_of_test:lazy", id="a function"),
        pytest.param("app_of_test:Apps.relay", id="something inside of something"),
        pytest.param("app_of_test:both", id="the asynchronous face"),
    ],
)
def test_one_handoff_is_run(folder: Path, app: str) -> None:
    """With `--once` the oldest is run, one line of words says so, and the rest is left."""
    offer(folder, "the first part", "the second part")
    done = work(app=app)

    assert (0, "") == (done.exit_code, done.stdout), done.output
    assert done.stderr.startswith("editor ")
    assert " · completed · " in done.stderr
    assert [State.COMPLETED, State.READY] == states(folder)


def test_a_program_gets_lines(folder: Path) -> None:
    """With `--json` a finished handoff is one object on one line."""
    offer(folder, "the first part")
    facts = json.loads(work("--json", "--name", "nightly", "--lease", "5").stdout)

    assert ["agent", "attempt", "error", "id", "reason", "state", "took"] == sorted(facts)
    assert ("editor", 1, "completed", True) == (
        facts["agent"],
        facts["attempt"],
        facts["state"],
        0 < facts["took"] < 60,
    )


def test_nothing_to_do_is_a_no(folder: Path) -> None:
    """With `--once` the exit code says whether there was one."""
    offer(folder, "the first part")

    assert [0, 1] == [work("--agents", "editor").exit_code, work().exit_code]


def test_a_line_says_why_it_failed(folder: Path) -> None:
    """The first sentence and the code; a program gets both."""
    offer(folder, "the first part", "the second part")
    told = work(app="app_of_test:unlucky").stderr
    facts = json.loads(work("--json", app="app_of_test:unlucky").stdout)

    assert told.endswith(" · ConnectionError: the model is overloaded. [connection]\n")
    assert ("connection", "ConnectionError: the model is overloaded. Try again later") == (
        facts["error"],
        facts["reason"],
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("app", "words"),
    [
        pytest.param("app_of_test", "write MODULE:NAME", id="no name"),
        pytest.param("no_such_app:relay", "there is no module no_such_app in", id="no such module"),
        pytest.param("app_of_test.inner:relay", "there is no module app_of_test.inner", id="no such module within one"),
        pytest.param("app_of_test:relay", "the module app_of_test has no relay", id="no such name"),
        pytest.param("app_of_test:Apps.nope", "the module app_of_test has no Apps.nope", id="no such name in a class"),
        pytest.param("app_of_test:answer", "int is not a Relay", id="something else"),
        pytest.param("app_of_test:broken", "it failed with KeyError: 'no settings'", id="an app that raises"),
        pytest.param("app_of_test:idle", "registers no agent", id="nobody to run"),
    ],
)
def test_an_app_that_is_none_is_wrong_usage(app: str, words: str) -> None:
    """Whatever is wrong with the app is said in a sentence, and is not a mistake of ours."""
    done = work(app=app)

    assert (2, True) == (done.exit_code, words in done.stderr), done.output
    assert "Traceback" not in done.output


@pytest.mark.usefixtures("folder")
def test_an_app_that_breaks_off_says_where() -> None:
    """The lines of whoever wrote the app, and none of ours."""
    done = work(app="app_of_test:broken")
    where = [line for line in done.stderr.splitlines() if ", line " in line]

    assert [True] == [line.endswith('in broken: raise KeyError("no settings")') for line in where]


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        pytest.param("edtor", "edtor: the app registers only editor; did you mean editor?", id="a typing mistake"),
        pytest.param("editor,mailer", "mailer: the app registers only editor", id="one of several"),
        pytest.param("Editor", "Editor: the app registers only editor; did you mean editor?", id="names are exact"),
        pytest.param(" , ", "is empty; the app registers editor", id="nobody"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_unknown_agent_is_wrong_usage(agents: str, words: str) -> None:
    """A worker that would never find anything to do says so at once."""
    done = work("--agents", agents)

    assert (2, True) == (done.exit_code, words in done.stderr), done.output


@pytest.mark.usefixtures("folder")
def test_a_name_that_cannot_be_one_is_wrong_usage() -> None:
    """A lease has to say who holds it."""
    assert [2, 2] == [work("--name", "a b").exit_code, work("--lease", "0").exit_code]
