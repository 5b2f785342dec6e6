"""`batonpass hook`: hand one event over by hand, as the hook command of another program does."""

import os
import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from batonpass.adapters.claude_code.hooks.client import HookInvocation, UnansweredError, ask
from batonpass.adapters.claude_code.hooks.events import EVENTS
from batonpass.cli.input.options import given_ledger, ledger_option, project_option
from batonpass.cli.output.exits import BROKEN
from batonpass.cli.output.terminal import say, tell
from batonpass.model.base.checks import shorten


class _Named(msgspec.Struct):
    hook_event_name: str


_NAMES: Final = msgspec.json.Decoder(_Named)


@click.group()
def command() -> None:
    """Hand one event over by hand, as the hook command of another program does."""


@command.command("claude-code")
@project_option
@click.option("--enforce", is_flag=True, help="Judge the call, as in an enforced session.")
@ledger_option
def claude_code(project: Path, *, enforce: bool) -> None:
    """Record the event on stdin, a JSON object as Claude Code gives it to hooks, and print the answer, if any.

    Unlike the hook command it says what is wrong, and exits with 3.
    """
    words = ["--project", str(project.resolve()), *(["--enforce"] if enforce else [])]
    if (ledger := given_ledger()) is not None:
        words += ["--ledger", ledger if "://" in ledger else str(Path(ledger).absolute())]
    event = sys.stdin.buffer.read()
    try:
        name = _NAMES.decode(event).hook_event_name
    except (msgspec.DecodeError, RecursionError) as error:
        raise click.UsageError(f"what is on stdin is no event of Claude Code: {error}") from None
    if name not in EVENTS:
        raise click.UsageError(f"nothing is recorded of {shorten(name)}; of these it is: {', '.join(EVENTS)}")
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
