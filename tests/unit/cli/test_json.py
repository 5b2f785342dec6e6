"""`--json` prints one document; only what goes on until somebody stops it prints one object a line."""

import ast
import json
from pathlib import Path

import click
import pytest

from batonpass.cli.nouns import cli
from tests.house.test_reference import our_commands
from tests.house.tree import PACKAGE, document, parsed
from tests.unit.cli.desk import Desk
from tests.unit.cli.handoffs import a_desk, tell

BY = ("--by", "user:ana", "--reason", "r")
AGENTS = ("aider", "claude-code", "cline", "codex", "copilot", "cursor", "droid", "gemini", "goose", "opencode", "qwen")
COMMANDS = {
    "run list": (),
    "run show": ("lead",),
    "handoff list": (),
    "handoff show": ("drafter",),
    "handoff brief": ("drafter",),
    "handoff retry": ("drafter", *BY),
    "handoff replace": ("drafter", "another", *BY),
    "handoff settle": ("drafter", "send_mail", "--skip"),
    "handoff approve": ("drafter", "--yes", *BY),
    "handoff deny": ("drafter", "--yes", *BY),
    "handoff answer": ("drafter", "yes"),
    "handoff verify": ("drafter", "--verdict", "fine"),
    "handoff refute": ("drafter", *BY),
    "handoff waive": ("drafter", *BY),
    "handoff cancel": ("drafter", *BY),
    "handoff check": ("drafter",),
    "handoff decline": ("drafter", *BY),
    "handoff endorse": ("drafter", "abcdef", *BY),
    "session list": (),
    "session show": ("last",),
    "session diff": ("last",),
    "session load": (),
    "session prune": ("last", "what comes along", *BY),
    "trail": ("last",),
    "why": ("last",),
    "taint": ("nothing from outside",),
    "policy check": (),
    "policy dry-run": (),
    "policy explain": (),
    "grant show": ("drafter",),
    "grant verify": ("drafter",),
    "grant revoke": ("drafter", *BY),
    "grant suggest": (),
    "receipt grep": (".",),
    "receipt show": ("last",),
    "receipt verify": ("notes.txt", "notes.txt", "--key", "0" * 64),
    "ledger export": ("--run", "lead", "-o", "tree.jsonl"),
    "ledger migrations": (),
    "ledger seal": (),
    "ledger stats": (),
    "ledger verify": (),
    "key list": (),
    "approver list": (),
    "token add": ("ana", "--role", "auditor", "--by", "user:ana"),
    "token list": (),
    "token revoke": ("abcdef", *BY),
    "webhook add": ("https://93.184.215.14/hook", "--by", "user:ana"),
    "webhook list": (),
    "webhook rotate": ("abcdef", "--by", "user:ana"),
    "webhook resume": ("abcdef", "--by", "user:ana"),
    "webhook test": ("abcdef",),
    "webhook remove": ("abcdef", *BY),
    "doctor": (),
    "endorse": ("notes.txt", *BY),
    "blame": ("--artifact", "rates.csv"),
    "review": ("last",),
    "drift": (),
    "alarm acknowledge": ("abcdef", *BY),
    "alarm check": (),
    "alarm list": (),
    "recall": ("--agent", "editor"),
    "acknowledge": ("unproven-approval", *BY),
    "git note": (),
    "git sync": (),
    **{f"import {name}": () for name in AGENTS},
    **{f"import {name}": ("notes.txt",) for name in ("jsonl", "langgraph", "openai-agents", "opentelemetry")},
}
ELSEWHERE = {
    "ledger extends",
    "git export",
    "git summary",
    "notify",
    "telemetry send",
    "webhook deliver",
    "worker",
}  # the first takes two seals, the next two a repository, the others print lines
LINES = {
    "notify",
    "send",
    "webhook",
    "worker",
    "live_events",
    "watch",
}  # what goes on: `notify`, `worker`, `--follow` and `--watch`


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk with the story told."""
    desk = a_desk(tmp_path)
    with desk.relay() as relay:
        tell(relay)
    (tmp_path / "notes.txt").touch()
    return desk


def test_the_table_has_every_command_with_json() -> None:
    """A new one is held to the rule."""
    taking = {
        path.removeprefix("batonpass ")
        for path, command in our_commands().items()
        if any("--json" in parameter.opts for parameter in command.params)
    }

    assert taking == {*COMMANDS, *ELSEWHERE}
    assert isinstance(cli, click.Group)


@pytest.mark.parametrize("name", COMMANDS)
def test_one_document_is_printed(desk: Desk, name: str) -> None:
    """An object or an array, whatever the answer is; an error too."""
    done = desk.run(*name.split(), *COMMANDS[name], "--json")

    assert isinstance(json.loads(done.stdout), dict | list), done.output


def test_a_search_without_a_match_is_an_empty_array(desk: Desk) -> None:
    """It is a no, and still a document."""
    done = desk.run("receipt", "grep", "nowhere to be found", "--json")

    assert (1, []) == (done.exit_code, json.loads(done.stdout))


def test_only_what_goes_on_prints_lines() -> None:
    """Each of these is named in the reference; a signed envelope is one document on one line."""
    found = {
        Path(path).stem
        for path, tree in parsed(PACKAGE / "cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "say_json"
        if any(keyword.arg == "line" for keyword in node.keywords)
    }

    assert LINES == found - {"receipt"}
    assert [] == [
        words
        for words in ("`worker`", "`notify`", "`telemetry send`", "`trail --follow`", "`handoff list --watch`")
        if words not in document("reference/cli.md").partition("**`--json`**")[2].partition("```")[0]
    ]
