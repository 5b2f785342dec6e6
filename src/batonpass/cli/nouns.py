"""The list of nouns. Each noun's module is loaded when it is used, so that `--help` is quick."""

from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from batonpass import __version__
from batonpass.cli.deferred_group import DeferredGroup
from batonpass.cli.input.options import ledger_option
from batonpass.cli.output.exits import answered

_NOUNS: Final = {
    "run": "List and show runs: which agent worked on which task.",
    "handoff": "List, show, approve, verify and retry delegated tasks.",
    "blame": "Show who wrote a line, on which task, and for whom.",
    "lsp": "Show in your editor who wrote a line.",
    "session": "List, show and compare sessions.",
    "trail": "Show a whole tree of runs in order.",
    "review": "List the findings of a run for a person.",
    "acknowledge": "Leave a finding of a review as it is, with a reason.",
    "drift": "Show changes over weeks, agent by agent.",
    "alarm": "List, check and acknowledge alarms about agents.",
    "recall": "Show the outcomes of earlier handoffs.",
    "why": "Explain why something was allowed, denied or held.",
    "taint": "Trace content from outside: where it entered, what it reached.",
    "endorse": "Vouch for a file that a tainted run wrote.",
    "policy": "Check, explain and try out policies.",
    "grant": "Show, verify, revoke and suggest grants.",
    "receipt": "Show, search and prove receipts.",
    "ledger": "Verify, seal, export and erase.",
    "key": "Manage the keys of relays.",
    "approver": "Manage the keys of people who approve.",
    "ui": "Look at this ledger in your browser.",
    "serve": "Let others work with this ledger over HTTP.",
    "token": "Manage the tokens of those who come in over HTTP.",
    "webhook": "Send receipts to other programs.",
    "worker": "Run handoffs that wait for an agent.",
    "notify": "Run your command whenever something waits for a person.",
    "telemetry": "Send spans and metrics to a collector of OpenTelemetry.",
    "mcp": "Let an MCP client hand off, search and blame.",
    "mcp-proxy": "Record every call between an MCP client and a server.",
    "init": "Set up recording for coding agents and MCP clients.",
    "hook": "Record one event of another program by hand.",
    "import": "Import sessions and traces of other programs.",
    "git": "Add runs and seals to every commit.",
    "doctor": "Find problems with this ledger, and say how to fix them.",
    "completion": "Set up completion for your shell.",
    "demo": "See in seconds how Batonpass records and answers.",
}

_MODULES: Final = {
    "acknowledge": "review.acknowledge",
    "alarm": "drift.alarm",
    "blame": "blame.command",
    "doctor": "doctor.command",
    "drift": "drift.command",
    "git": "git.command",
    "grant": "grant.command",
    "handoff": "handoff.command",
    "hook": "hook_event",
    "import": "import_",
    "init": "init.command",
    "ledger": "ledger.command",
    "mcp": "server.mcp",
    "mcp-proxy": "mcp_proxy",
    "recall": "drift.recall",
    "review": "review.command",
    "serve": "server.serve",
    "session": "session.command",
    "taint": "taint.command",
    "telemetry": "telemetry.send",
    "token": "server.token",
    "trail": "trail.command",
    "ui": "server.ui",
    "webhook": "server.webhook",
}  # for nouns whose module has another name


class NounGroup(DeferredGroup):
    """A group that lists its nouns without loading them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of nouns without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_NOUNS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return matching nouns and options, without loading the nouns."""
        nouns = [CompletionItem(noun, help=about) for noun, about in _NOUNS.items() if noun.startswith(incomplete)]
        return [*nouns, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command; every error becomes a sentence and an exit code."""
        with answered(ctx):
            return super().invoke(ctx)


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click calls it
    if wanted and not context.resilient_parsing:
        click.echo(f"batonpass {__version__}")
        context.exit()


@click.group(
    cls=NounGroup,
    homes={noun: f"{_MODULES.get(noun, noun)}:command" for noun in _NOUNS},
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
    """Batonpass records who did what under whose authority, in a tamper-evident ledger.

    For an ID, give its last characters, an agent's name, or `last`.
    """
