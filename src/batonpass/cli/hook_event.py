"""`batonpass hook`: record one event by hand, as the hook command of another program does."""

import os
import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from batonpass.adapters.coders.client import HookInvocation, UnansweredError, ask
from batonpass.adapters.coders.events import EVENTS
from batonpass.cli.input.options import given_ledger, ledger_option, project_option
from batonpass.cli.output.exits import BROKEN
from batonpass.cli.output.terminal import say, tell
from batonpass.model.base.checks import shorten


class _Named(msgspec.Struct):
    hook_event_name: str


_NAMES: Final = msgspec.json.Decoder(_Named)


@click.group()
def command() -> None:
    """Record one event by hand, as the hook command of another program does."""


@command.command("claude-code")
@project_option
@click.option("--enforce", is_flag=True, help="Decide about the call as in an enforced session.")
@ledger_option
def claude_code(project: Path, *, enforce: bool) -> None:
    """Record an event from stdin, and print the answer, if any.

    The event is a JSON object as Claude Code passes it to hooks. Unlike the hook command, this one reports errors, and
    exits with 3.
    """
    words = ["--project", str(project.resolve()), *(["--enforce"] if enforce else [])]
    if (ledger := given_ledger()) is not None:
        words += ["--ledger", ledger if "://" in ledger else str(Path(ledger).absolute())]
    event = sys.stdin.buffer.read()
    try:
        name = _NAMES.decode(event).hook_event_name
    except (msgspec.DecodeError, RecursionError) as error:
        raise click.UsageError(f"stdin does not hold an event of Claude Code: {error}") from None
    if name not in EVENTS:
        raise click.UsageError(f"{shorten(name)} is not recorded; these events are: {', '.join(EVENTS)}")
    try:
        call = HookInvocation(words, dict(os.environ))
        os.chdir(call.home)
        answer = ask(call, event)
    except (UnansweredError, OSError) as error:
        tell(f"batonpass: the event was not recorded: {error}")
        click.get_current_context().exit(BROKEN)
    if answer:
        say(answer.decode())
    tell(f"{name} is recorded; `batonpass trail last` shows it")
