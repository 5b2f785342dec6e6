"""The front door: which nouns there are. Each is loaded when somebody asks for it, so that `--help` is quick."""

import importlib
import io
import sys
from typing import Any, Final

import click

from batonpass import __version__
from batonpass.cli.exits import answered
from batonpass.cli.options import ledger_option

_NOUNS: Final = {
    "run": "Runs: who worked on what, and for whom.",
    "handoff": "Handoffs: what was delegated, what came of it, what to do next.",
    "blame": "Who wrote a line, on which task, and for whom.",
    "session": "Sessions: what comes along to the next one, and what changed.",
    "trail": "The trail: a whole tree as it happened.",
    "why": "Why something was allowed, denied or held.",
    "taint": "Where a text from outside entered, and what it reached.",
    "endorse": "Answer for a file that a run wrote which knew something from outside.",
    "policy": "Policies: check the file, explain it, try it on what is recorded.",
    "grant": "Grants: who may do what, by whose word.",
    "receipt": "Receipts: one signed record of anything.",
    "ledger": "The ledger: verify, seal, export, erase.",
    "key": "Keys: which relays may record here.",
    "approver": "Approvers: whose keys prove what they decided.",
    "worker": "Run what waits for an agent, under a lease.",
    "mcp-proxy": "Stand between an MCP client and a server, and record every call.",
    "init": "Let other programs tell the ledger what they do, while they do it.",
    "hook": "Hand one event of another program over by hand.",
    "import": "Bring what other programs already keep into the ledger.",
    "git": "Put the ledger's seal into every commit.",
    "doctor": "Say what is wrong with this ledger, and what to do.",
    "demo": "Show in seconds what is recorded and what is found.",
}

_MODULES: Final = {
    "hook": "hook_event",
    "import": "import_",
    "mcp-proxy": "mcp_proxy",
}  # where the module cannot be called like the noun


class Door(click.Group):
    """A group whose commands are in modules of their own."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return the command for a noun, from its module."""
        if cmd_name not in self.commands:
            return None
        found = importlib.import_module(f"batonpass.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        if not isinstance(found, click.Command):
            raise TypeError(cmd_name)
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the nouns in the order in which people need them."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of nouns without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_NOUNS.items()))

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run what was asked for; whatever goes wrong becomes a sentence and an exit code."""
        with answered(ctx):
            return super().invoke(ctx)


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click calls it
    if wanted and not context.resilient_parsing:
        click.echo(f"batonpass {__version__}")
        context.exit()


@click.group(
    cls=Door,
    commands={noun: click.Command(noun) for noun in _NOUNS},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Print the version.",
)
@ledger_option
def cli() -> None:
    """Batonpass records who did what under whose authority, in a ledger that shows when it was changed.

    An ID is the last characters of one, `last`, or an agent's name.
    """


def main() -> None:
    """Run the command line. What we read and print is UTF-8, wherever we are: a seal must keep its bytes."""
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
    cli(prog_name="batonpass")
