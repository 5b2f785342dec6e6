"""`batonpass completion`: the scripts, and what a shell that uses them is offered."""

from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from batonpass.cli.input.id_types import IdType
from batonpass.cli.nouns import cli
from batonpass.relay import Relay
from batonpass.store.postgres.connections import Connections, Patience
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk, tell
from tests.unit.cli.input.test_id_types import COMMANDS


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk with the story told."""
    desk = a_desk(tmp_path)
    with desk.relay() as relay:
        tell(relay)
        relay.start("quiet \x1b[2J please", by="user:ana", agent="hostile", series="quarterly")
    return desk


def offered(*words: str) -> dict[str, str | None]:
    """Return what a shell is offered behind these words, the last of which is begun."""
    *before, begun = words
    found = ShellComplete(cli, {}, "batonpass", "_BATONPASS_COMPLETE").get_completions(before, begun)
    return {item.value: item.help for item in found}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_printed(shell: str) -> None:
    """One for each shell, which calls us under the name that we have; and without a word about the shell here."""
    done = CliRunner().invoke(cli, ["completion", shell], prog_name="batonpass")

    assert (0, "", True) == (done.exit_code, done.stderr, f"_BATONPASS_COMPLETE={shell}_complete" in done.stdout)


def test_nouns_come_with_what_they_are_for() -> None:
    """Without loading any of them."""
    assert {"trail": "Show a whole tree of runs in order."} == offered("trai")


def test_ids_and_names_come_with_the_task(desk: Desk) -> None:
    """Endings of the latest, and agents; each can be typed as it is offered."""
    found = offered("--ledger", str(desk.ledger), "handoff", "show", "")
    with desk.relay() as relay, relay.store.view() as view:
        handoff = next(view.find_handoffs()).id

    assert {"last", handoff[-6:], "drafter"} == set(found)
    assert found[handoff[-6:]] == 'handoff to drafter · failed · "Make total() round half-even."'
    assert {"drafter"} == set(offered("--ledger", str(desk.ledger), "handoff", "show", "dra"))
    assert {"quarterly"} <= set(offered("--ledger", str(desk.ledger), "session", "show", ""))
    assert {"lead", "drafter", "hostile"} == set(offered("--ledger", str(desk.ledger), "run", "list", "--agent", ""))


def test_words_of_others_are_made_harmless(desk: Desk) -> None:
    """A task cannot repaint the terminal of whoever presses the tab key."""
    helps = offered("--ledger", str(desk.ledger), "run", "show", "").values()

    assert [True] == ["\\x1b[2J" in str(words) for words in helps if "quiet" in str(words)][:1]
    assert [] == [words for words in helps if "\x1b" in str(words)]


def test_nothing_is_made_and_nothing_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no ledger, where it is none, or where it cannot be read: no ids, no file, no word."""
    monkeypatch.setattr(Connections, "patience", lambda _: Patience(0.1))  # else it waits for half a minute
    (tmp_path / "none.db").write_text("no ledger", encoding="utf-8")
    places = [(), ("--ledger", "missing.db"), ("--ledger", "none.db"), ("--ledger", "postgresql://127.0.0.1:9/x")]

    assert [{}] * 4 == [offered(*place, "run", "show", "") for place in places]
    assert (["none.db"], ("", "")) == ([each.name for each in tmp_path.iterdir()], capfd.readouterr())


def test_every_id_can_be_completed() -> None:
    """Whatever takes an id of a run, a handoff, a receipt or a session offers those that there are."""
    exempt = {"handoff endorse SOURCE", "key revoke", "token revoke", "blame --artifact"} | {
        name
        for name in COMMANDS
        if name.startswith("webhook ") or "CALL" in name or "--skip" in name or "--repeat" in name
    }
    found = {}
    for name, words in COMMANDS.items():
        command: click.Command = cli
        context = click.Context(cli)
        rest = list(words)
        while isinstance(command, click.Group):
            child = command.get_command(context, rest.pop(0))
            assert child is not None
            command = child
        found[name] = any(isinstance(parameter.type, IdType) for parameter in command.params)

    assert [] == [name for name, completes in found.items() if not completes and name not in exempt]


def test_a_ledger_in_use_is_not_in_the_way(desk: Desk) -> None:
    """A program that records meanwhile is not disturbed, and what it recorded is offered."""
    with Relay.open(f"sqlite:///{desk.ledger}", home=desk.ledger.parent) as relay:
        relay.start("now", by="user:ana", agent="fresh")

        assert "fresh" in offered("--ledger", str(desk.ledger), "run", "show", "fr")
