"""A ledger that is committed in a repository is opened by no command, unless somebody names it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from batonpass.cli.nouns import cli
from batonpass.config import find_settings, require_own_ledger
from batonpass.errors import ForeignLedgerError
from batonpass.model.base.ids import new_relay_id
from tests.attribution.repository import git
from tests.house.test_reference import our_commands
from tests.unit.cli.desk import Desk, record_in

# What a command needs beyond its required arguments to get as far as its ledger.
MORE: Final = {
    "approver enroll": ("ana", "00" * 32),
    "blame": ("editor",),
    "git export": ("--agent-trace",),
    "git summary": ("HEAD",),
    "grant revoke": ("last",),
    "grant verify": ("last",),
    "handoff settle": ("last", "last", "--skip"),
    "key enroll": (new_relay_id(datetime(2026, 1, 1, tzinfo=UTC)), "00" * 32),
    "mcp-proxy": ("--", "true"),
    "recall": ("rounding",),
    "trail": ("last",),
}
# Who asks no ledger, or is told which one by whoever made it.
NO_LEDGER: Final = {
    "approver add": "asks for a passphrase at a terminal first",
    "completion": "prints a script",
    "demo": "makes a ledger of its own",
    "doctor": "lists it among what it found, which is tested below",
    "git install": "writes hooks of git",
    "git sync": "exchanges notes",
    "git trailer": "is a hook of git that never stops a commit",
    "hook": "is told by whoever installed the hook",
    "import": "finds no session here; it records, and reads nothing",
    "init": "writes settings of other programs",
    "ledger extends": "compares two seals",
    "lsp": "answers editors, which have a test of their own",
    "policy check": "reads a file",
    "policy explain": "reads a file",
    "policy upgrade": "writes a file",
    "receipt verify": "checks a proof without a ledger",
    "worker": "uses the relay of a program",
}


def arguments_of(name: str, command: click.Command) -> list[str]:
    """Return the words of a command, with something for whatever it requires."""
    words = name.split()
    if name in MORE:
        return [*words, *MORE[name]]
    for parameter in command.params:
        if not parameter.required:
            continue
        kind = parameter.type
        chosen = kind.choices[0] if isinstance(kind, click.Choice) else "last"
        given = "a.py" if isinstance(kind, click.Path) else str(getattr(chosen, "value", chosen))
        words += [parameter.opts[0], given] if isinstance(parameter, click.Option) else [given]
    return words


@pytest.fixture
def committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk in a repository that has its ledger in a commit; nobody names the ledger."""
    desk = record_in(tmp_path)
    (tmp_path / "a.py").write_text("print(1)\n", encoding="utf-8")
    (tmp_path / "batonpass.toml").write_text('[notify]\ncommand = ["true"]\n', encoding="utf-8")
    who = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org"]
    for words in (["init", "-q"], ["add", "-f", ".batonpass/ledger.db", "a.py"], [*who, "commit", "-qm", "First"]):
        git(tmp_path, *words)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BATONPASS_LEDGER", raising=False)
    return desk


def test_no_command_opens_a_committed_ledger(committed: Desk) -> None:
    """Each of them says why and what to do instead, and the file stays as it was."""
    before = committed.ledger.read_bytes()
    names = {path.removeprefix("batonpass "): command for path, command in our_commands().items()}
    asked = {
        name: arguments_of(name, command)
        for name, command in names.items()
        if not isinstance(command, click.Group) and not {name, name.split()[0]} & NO_LEDGER.keys()
    }
    told = {name: CliRunner().invoke(cli, words) for name, words in asked.items()}
    odd = {
        name: done.output
        for name, done in told.items()
        if done.exit_code != 3 or "is committed in the repository" not in done.stderr or "--ledger" not in done.stderr
    }

    assert {} == odd
    assert {"run list", "handoff list", "why", "trail", "review", "drift", "ledger verify", "ui"} <= asked.keys()
    assert before == committed.ledger.read_bytes()


def test_doctor_says_that_it_is_committed(committed: Desk) -> None:
    """It goes on with what is around the ledger, and opens nothing."""
    before = committed.ledger.read_bytes()
    done = CliRunner().invoke(cli, ["doctor", "--json"])

    assert (3, True) == (done.exit_code, "is committed in the repository" in done.stdout)
    assert before == committed.ledger.read_bytes()


def test_whoever_names_it_trusts_it(committed: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option, or by the variable."""
    assert 0 == committed.run("run", "list").exit_code
    monkeypatch.setenv("BATONPASS_LEDGER", str(committed.ledger))
    assert 0 == CliRunner().invoke(cli, ["run", "list"]).exit_code


def test_a_ledger_that_git_ignores_is_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository around it changes nothing; one that git cannot read may hold anything."""
    record_in(tmp_path)
    git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path)
    found = find_settings(environment={})
    require_own_ledger(found)
    (tmp_path / ".git" / "HEAD").unlink()

    with pytest.raises(ForeignLedgerError):
        require_own_ledger(found)
