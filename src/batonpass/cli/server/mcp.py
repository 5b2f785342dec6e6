"""`batonpass mcp`: the ledger of this directory for an MCP client, over stdin and stdout."""

import click

from batonpass.cli.input.ledger_access import own_settings
from batonpass.cli.input.options import ledger_option, principal_option
from batonpass.errors import MissingExtraError
from batonpass.model.base.ids import PrincipalId
from batonpass.relay import Relay


@click.command()
@principal_option("For whom the client works, and who decides when it asks.")
@ledger_option
def command(by: str) -> None:
    """Let an MCP client hand off, ask, report, search and blame in this directory's ledger.

    Speaks MCP on stdin and stdout until the client closes them. Runs are recorded for --by. If something is held, the
    client asks the person in front of it; a model cannot approve.
    """
    try:
        from batonpass.server.mcp.stdio import LocalCaller, serve_stdio  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types", "anyio", "starlette"}:
            raise
        raise MissingExtraError("MCP servers", "mcp") from None
    from batonpass.cli.server.work_tree_answers import WorkTreeAnswers  # noqa: PLC0415 - as above

    found = own_settings()

    def opened() -> Relay:
        # A client starts this anew for each of its sessions, and the runs go on: so their keys are in files.
        return Relay.open(found.ledger, home=found.home, policy=found.policy, keys_in_files=True)

    serve_stdio(LocalCaller(opened, PrincipalId(by)), WorkTreeAnswers(only_known=False))
