"""The front door: which nouns there are. Each is loaded when somebody asks for it, so that `--help` is quick."""

from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from batonpass import __version__
from batonpass.cli.deferred_group import DeferredGroup
from batonpass.cli.input.options import ledger_option
from batonpass.cli.output.exits import answered

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
    "completion": "Let your shell complete commands, ids and names.",
    "demo": "Show in seconds what is recorded and what is found.",
}

_MODULES: Final = {
    "blame": "blame.command",
    "doctor": "doctor.command",
    "git": "git.command",
    "grant": "grant.command",
    "handoff": "handoff.command",
    "hook": "hook_event",
    "import": "import_",
    "init": "init.command",
    "ledger": "ledger.command",
    "mcp-proxy": "mcp_proxy",
    "session": "session.command",
    "taint": "taint.command",
    "trail": "trail.command",
}  # where the module cannot be called like the noun


class NounGroup(DeferredGroup):
    """The nouns, told without loading them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of nouns without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_NOUNS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the nouns that begin like this, without loading them; and our own options."""
        nouns = [CompletionItem(noun, help=about) for noun, about in _NOUNS.items() if noun.startswith(incomplete)]
        return [*nouns, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run what was asked for; whatever goes wrong becomes a sentence and an exit code."""
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
    """Batonpass records who did what under whose authority, in a ledger that shows when it was changed.

    An ID is the last characters of one, `last`, or an agent's name.
    """
