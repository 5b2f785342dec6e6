"""`batonpass mcp-proxy`: record every call between an MCP client and a server."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from batonpass.adapters.mcp.clients.wrapped_servers import MARK
from batonpass.adapters.mcp.proxy.backend import Backend, StdioBackend, headers_from
from batonpass.adapters.mcp.proxy.call_decision import Guard
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyOrigin, ProxyRecorder
from batonpass.adapters.mcp.proxy.service import serve
from batonpass.adapters.mcp.server_declaration import name_for, read_server, require_name
from batonpass.cli.input.ledger_access import own_settings
from batonpass.cli.input.options import checked, ledger_option, principal_option
from batonpass.cli.output.exits import BROKEN
from batonpass.cli.output.terminal import tell
from batonpass.config import HANDOFF, Settings
from batonpass.errors import MissingExtraError
from batonpass.handoff.files.protected_paths import Protected, program_files
from batonpass.model.base.ids import HANDOFF as IDS_OF_HANDOFFS
from batonpass.model.base.ids import HandoffId, require_agent, require_id, session_named
from batonpass.policy.file_place import find_file
from batonpass.policy.policy_table import given_policy

if TYPE_CHECKING:
    from batonpass.model.grants.grant import Grant
    from batonpass.relay import Relay

_LOADERS: Final = frozenset({"npx", "uvx", "uv", "node", "python", "python3", "bunx", "pipx", "docker", "deno"})


@click.command()
@click.argument("command", metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", metavar="URL", help="The server's address, for streamable HTTP.")
@click.option(
    "--header",
    "headers",
    metavar="NAME=VARIABLE",
    multiple=True,
    help="Send this header, with the value of an environment variable.",
)
@click.option(
    "--name",
    metavar="NAME",
    callback=checked(require_name),
    help="The server's name in receipts and in batonpass.toml.  [default: from its command or URL]",
)
@click.option("--enforce", is_flag=True, help="Hold and deny calls by the policy; make no call without recording it.")
@principal_option("For whom the client works.")
@click.option(
    "--agent",
    metavar="AGENT",
    callback=checked(lambda given: require_agent("agent", given)),
    help="The agent that calls.  [default: the client's own name]",
)
@click.option(
    "--may",
    metavar="PERMIT",
    multiple=True,
    help="A permit for the client, such as call:shop/*; everything else is denied.",
)
@click.option(
    "--handoff",
    metavar="ID",
    envvar=HANDOFF,
    show_envvar=True,
    help="Work on this handoff, within its grant.",
)
@click.option(MARK, "from_init", is_flag=True, help="Set by `batonpass init mcp`, so that --undo finds it.")
@click.option("--session", metavar="NAME", help="The session that the run belongs to.")
@click.option("--series", metavar="NAME", help="The series that the run belongs to.")
@ledger_option
def command(
    command: tuple[str, ...],
    *,
    url: str | None,
    headers: tuple[str, ...],
    name: str | None,
    enforce: bool,
    by: str,
    agent: str | None,
    may: tuple[str, ...],
    handoff: str | None,
    from_init: bool,  # noqa: ARG001 - a mark in the client's settings
    session: str | None,
    series: str | None,
) -> None:
    """Record every call between an MCP client, on stdin and stdout, and a server.

    The server is started by COMMAND, or reached at --url. Other messages pass unchanged. Exits with 3 if the server
    ends before its client.
    """
    if bool(command) == (url is not None):
        raise click.UsageError("give the server's command after --, or --url")
    if headers and url is None:
        raise click.UsageError("--header is for a server at --url")
    found = own_settings()
    file = found.policy or (None if found.home is None else find_file(found.home.absolute().parent))
    policy = given_policy(file)
    server = read_server(file, name or _name_of(command, url))
    if may and handoff is not None:
        raise click.UsageError("the grant of a handoff is set by its sender: leave --may out")
    origin = ProxyOrigin(
        by=by,
        agent=agent,
        session=None if session is None else session_named(session),
        series=series,
        grant=_granted(may),
        handoff=None if handoff is None else require_id("handoff", HandoffId(handoff), IDS_OF_HANDOFFS),
    )
    enforced = enforce or policy.enforce or bool(may) or handoff is not None
    recorder = ProxyRecorder(lambda: _open(found, file), origin, enforced=enforced, tell=_complain)
    protected = Protected.around(found.home, found.ledger, Path.cwd(), program=program_files())
    gone = serve(server, _reach(command, url, headers), recorder, Guard(recorder, protected))
    if gone is not None:
        _complain(str(gone))
        click.get_current_context().exit(BROKEN)


def _reach(command: tuple[str, ...], url: str | None, headers: tuple[str, ...]) -> Backend:
    if url is None:
        return StdioBackend(command)
    given = headers_from(headers, os.environ)
    if find_spec("mcp") is None:
        raise MissingExtraError("MCP servers that are reached by HTTP", "mcp")
    from batonpass.adapters.mcp.proxy.http_backend import HttpBackend  # noqa: PLC0415 - the SDK, which takes a while, only for HTTP

    return HttpBackend(url, given)


def _granted(may: tuple[str, ...]) -> "Grant | None":
    if not may:
        return None
    from batonpass.model.grants.grant import Grant  # noqa: PLC0415 - as below
    from batonpass.model.grants.scope_text import read_scope  # noqa: PLC0415 - as below

    return Grant(may=read_scope(may))


def _open(found: Settings, policy: Path | None) -> "Relay":
    from batonpass.relay import Relay  # noqa: PLC0415 - with the first call: few of a client's servers are called

    return Relay.open(found.ledger, home=found.home, policy=policy)


def _name_of(command: tuple[str, ...], url: str | None) -> str:
    """Return a name for a server; for a program that only loads others, the first word that is not such a program."""
    if url is not None:
        return name_for(urlsplit(url).hostname or "server")
    words = [Path(word).name for word in command if not word.startswith("-")] or [command[0]]
    return name_for(next((word for word in words if word not in _LOADERS), words[0]))


def _complain(sentence: str) -> None:
    tell(f"batonpass mcp-proxy: {sentence}")
