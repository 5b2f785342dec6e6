"""`batonpass lsp`: a language server, so that editors show who wrote a line."""

import sys

import click

from batonpass.adapters.editor.language_server import LanguageServer
from batonpass.cli.input.options import given_ledger, ledger_option


@click.command()
@click.option("--stdio", is_flag=True, help="Speak on stdin and stdout, as always; some editors add it.")
@ledger_option
def command(*, stdio: bool) -> None:  # noqa: ARG001 - there is no other way to speak
    """Serve an editor over stdin and stdout: hover, code lens, and who wrote each line.

    Reads the ledger nearest to each file, or the sessions of coding agents, and changes nothing.
    """
    server = LanguageServer(sys.stdin.buffer, sys.stdout.buffer, ledger=given_ledger())
    click.get_current_context().exit(server.serve())
