"""Every command that takes an id takes it by the same rule."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from batonpass.cli.nouns import cli
from batonpass.model.base import ids
from batonpass.model.base.ids import AgentId
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk, tell

BY = ("--by", "user:ana", "--reason", "r")
COMMANDS = {
    "run show": ("run", "show", "{}"),
    "handoff list --run": ("handoff", "list", "--run", "{}"),
    "handoff list --root": ("handoff", "list", "--root", "{}"),
    "handoff list --before": ("handoff", "list", "--before", "{}"),
    "run list --before": ("run", "list", "--before", "{}"),
    "handoff show": ("handoff", "show", "{}"),
    "handoff brief": ("handoff", "brief", "{}"),
    "handoff approve": ("handoff", "approve", "{}", "--yes", *BY),
    "handoff deny": ("handoff", "deny", "{}", "--yes", *BY),
    "handoff answer": ("handoff", "answer", "{}", "yes"),
    "handoff verify": ("handoff", "verify", "{}", "--verdict", "fine"),
    "handoff refute": ("handoff", "refute", "{}", *BY),
    "handoff waive": ("handoff", "waive", "{}", *BY),
    "handoff retry": ("handoff", "retry", "{}", *BY),
    "handoff retry --skip": ("handoff", "retry", "drafter", "--skip", "{}"),
    "handoff retry --repeat": ("handoff", "retry", "drafter", "--repeat", "{}"),
    "handoff replace": ("handoff", "replace", "{}", "another"),
    "handoff replace --skip": ("handoff", "replace", "drafter", "another", "--skip", "{}"),
    "handoff replace --repeat": ("handoff", "replace", "drafter", "another", "--repeat", "{}"),
    "handoff settle": ("handoff", "settle", "{}", "send_mail", "--skip"),
    "handoff settle CALL": ("handoff", "settle", "drafter", "{}", "--skip"),
    "handoff cancel": ("handoff", "cancel", "{}", *BY),
    "handoff check": ("handoff", "check", "{}"),
    "handoff decline": ("handoff", "decline", "{}", *BY),
    "handoff endorse": ("handoff", "endorse", "{}", "abcdef", *BY),
    "handoff endorse SOURCE": ("handoff", "endorse", "drafter", "{}", *BY),
    "trail": ("trail", "{}"),
    "why": ("why", "{}"),
    "review": ("review", "{}"),
    "token revoke": ("token", "revoke", "{}", *BY),
    "webhook rotate": ("webhook", "rotate", "{}", "--by", "user:ana"),
    "webhook resume": ("webhook", "resume", "{}", "--by", "user:ana"),
    "webhook test": ("webhook", "test", "{}"),
    "webhook remove": ("webhook", "remove", "{}", *BY),
    "policy explain": ("policy", "explain", "{}"),
    "grant show": ("grant", "show", "{}"),
    "grant verify": ("grant", "verify", "{}"),
    "grant revoke": ("grant", "revoke", "{}", *BY),
    "receipt show": ("receipt", "show", "{}"),
    "receipt proof": ("receipt", "proof", "{}"),
    "ledger export --run": ("ledger", "export", "--run", "{}"),
    "ledger erase": ("ledger", "erase", "{}", "--yes", *BY),
    "session show": ("session", "show", "{}"),
    "session diff": ("session", "diff", "{}"),
    "session load": ("session", "load", "{}"),
    "session prune": ("session", "prune", "{}", "what comes along", *BY),
    "session diff OTHER": ("session", "diff", "last", "{}"),
    "key revoke": ("key", "revoke", "{}", "--reason", "r"),
    "blame --artifact": ("blame", "--artifact", "{}"),
}
# Of these there are not two in the story.
ONE_ONLY = {
    "handoff endorse SOURCE",
    "key revoke",
    "blame --artifact",
    "token revoke",
    "webhook rotate",
    "webhook resume",
    "webhook test",
    "webhook remove",
}
LINE = re.compile(
    r"  \w{4,} · (run of|handoff to|receipt [a-z.]+ of|call \w+ of|session of|content)( \S+)* · \d{4}-\d\d-\d\d "
)
NOT_HERE = {
    "taint": "what is no id is a text to look for",
    "blame --effect": "what is no id is a target to look for",
    "mcp-proxy --handoff": "programs give a whole id, and the ledger may not be there yet",
}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Return a desk with the story told twice, in which all ids end alike, and one is ambiguous for every command."""
    desk = a_desk(tmp_path)
    with desk.relay() as relay:
        lead = tell(relay).lead
        monkeypatch.setattr(ids, "_DRAWN", SimpleNamespace(pop=lambda: "g" * 13))
        for name in ("one", "two"):
            root = relay.start("Again", by="user:ana", agent=name)
            root.hand_off(f"{name}-child", "Do it").accept()
            lead.hand_off(f"{name}-below", "Do it")
    return desk


def find_ids_taken(command: click.Command, path: str) -> Iterator[str]:
    """Yield the commands, with the option if it is one, that take an id."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from find_ids_taken(child, f"{path} {name}".strip())
        return
    first = True
    for parameter in command.params:
        metavar = parameter.metavar or (parameter.name == "key" and "ID") or ""
        if re.search(r"\b(ID|CALL|SOURCE|HANDOFF)\b", metavar):
            if isinstance(parameter, click.Option):
                yield f"{path} {parameter.opts[0]}"
            else:
                yield path if first else f"{path} {str(parameter.name).upper()}"
        first = False


def test_the_table_has_every_command_that_takes_an_id() -> None:
    """A new one is held to the rule, or says why it is not."""
    assert {*COMMANDS, *NOT_HERE} == set(find_ids_taken(cli, ""))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_short_ending_is_refused(desk: Desk, command: tuple[str, ...]) -> None:
    """With a sentence, and nothing is done; also in capitals, as `why D`."""
    for given in ("f", "F", "zzz"):
        done = desk.run(*(word.format(given) for word in command))

        assert (1, "") == (done.exit_code, done.stdout)
        assert "to use the end of an id, give at least 4 characters [id.too_short]" in done.stderr


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_nobody_answers_to_an_unknown_name(desk: Desk, command: tuple[str, ...]) -> None:
    """What is neither a name nor an ending is not found, in any command."""
    done = desk.run(*(word.format("nobody") for word in command))

    assert (1, "") == (done.exit_code, done.stdout)
    assert "[id.not_found]" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in COMMANDS
        if name not in ONE_ONLY and "CALL" not in name and "--skip" not in name and "--repeat" not in name
    ],
)
def test_several_are_listed(desk: Desk, name: str) -> None:
    """Each with its kind, whose it is, and since when; and nothing is done."""
    with desk.relay() as relay, relay.store.view() as view:
        (alike,) = {run.id[-8:] for run in view.find_runs(agent=AgentId("one"))}
    before = desk.answer("ledger", "stats")["receipts"]
    done = desk.run(*(word.format(alike) for word in COMMANDS[name]))
    first, *lines = done.stderr.splitlines()

    assert (1, "") == (done.exit_code, done.stdout)
    assert first.endswith("could be any of these; give the last characters of the one you mean: [id.ambiguous]")
    assert len(lines) >= 2
    assert [] == [line for line in lines[:5] if not re.match(LINE, line)]
    assert before == desk.answer("ledger", "stats")["receipts"]
