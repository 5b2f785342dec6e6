"""`batonpass serve`: let others work with this ledger over HTTP."""

import getpass
import logging
import os
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from batonpass.cli.input.ledger_access import own_settings, settings
from batonpass.cli.input.options import ledger_option
from batonpass.cli.output.terminal import paint, tell
from batonpass.cli.server.people import people_routes
from batonpass.config import find_policy_file
from batonpass.errors import MissingExtraError
from batonpass.policy.egress_table import read_egress
from batonpass.records.access_token import find_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from batonpass.dispatch.egress_rule import EgressRule
    from batonpass.relay import Relay
    from batonpass.server.a2a.mount import A2aDoor
    from batonpass.server.a2a.settings import GrpcPlace
    from batonpass.server.control_plane import ControlPlane
    from batonpass.server.listener import ServerPlace
    from batonpass.server.mcp.http_mount import McpMount

_PORT: Final = 7420
_EXTRA: Final = frozenset({"starlette", "uvicorn", "anyio", "sse_starlette", "jinja2", "markupsafe", "pygments"})


@click.command()
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="The port; 0 for any that is free."
)
@click.option("--host-name", "names", metavar="NAME", multiple=True, help="A name that clients call it by.")
@click.option("--certificate", metavar="FILE", type=click.Path(path_type=Path), help="The certificate, for TLS.")
@click.option("--key", metavar="FILE", type=click.Path(path_type=Path), help="The certificate's key.")
@click.option("--proxy", "proxies", metavar="ADDRESS", multiple=True, help="A proxy in front of it that does TLS.")
@click.option("--insecure", is_flag=True, help="Let other machines in without TLS.")
@click.option(
    "--grpc-port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve A2A over gRPC as well, at this port; 0 for any that is free.",
)
@click.option(
    "--app", metavar="MODULE:NAME", help="Your relay: its agents can be asked over A2A, and its ledger is served."
)
@click.option(
    "--repository",
    "repositories",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    help="A repository whose files the page may show, with who wrote each line.",
)
@click.option("--link/--no-link", default=True, show_default=True, help="Print a link that lets you in, once.")
@click.option(
    "--address-file", metavar="FILE", type=click.Path(path_type=Path), help="Write the address there once it listens."
)
@click.option("--pid-file", metavar="FILE", type=click.Path(path_type=Path), help="Write the id of the process there.")
@ledger_option
def command(
    *,
    host: str,
    port: int,
    names: tuple[str, ...],
    certificate: Path | None,
    key: Path | None,
    proxies: tuple[str, ...],
    insecure: bool,
    grpc_port: int | None,
    app: str | None,
    repositories: tuple[Path, ...],
    link: bool,
    address_file: Path | None,
    pid_file: Path | None,
) -> None:
    """Serve this ledger over HTTP until a signal, on this machine alone unless told otherwise.

    Every caller needs a token, also on this machine: `batonpass token add` makes one. The first SIGTERM or Ctrl-C lets
    requests under way finish.
    """
    require_extra()
    from batonpass.server.listener import ServerPlace  # noqa: PLC0415 - needs the extra

    place = ServerPlace(host=host, port=port, certificate=certificate, key=key, proxies=proxies, insecure=insecure)

    def ready(plane: "ControlPlane", address: str) -> None:
        code = plane.entrance.open(f"user:{own_user()}") if link and _is_own(place) else None
        _tell_ready(plane.relay, address, code)
        if pid_file is not None:
            pid_file.write_text(f"{os.getpid()}\n", encoding="utf-8")
        if address_file is not None:
            address_file.write_text(f"{address}\n", encoding="utf-8")

    serve_ledger(place, names, ready, app=app, repositories=repositories, grpc_port=grpc_port)
    tell("stopped")


def require_extra() -> None:
    """Raise `MissingExtraError` if the packages for servers are not installed."""
    try:
        import batonpass.server.listener  # noqa: F401, PLC0415 - needs the extra
        import batonpass.server.page.door  # noqa: F401, PLC0415 - as above
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise MissingExtraError("servers", "server") from None


def serve_ledger(
    place: "ServerPlace",
    names: "Sequence[str]",
    ready: "Callable[[ControlPlane, str], None]",
    *,
    app: str | None = None,
    repositories: "Sequence[Path]" = (),
    grpc_port: int | None = None,
) -> None:
    """Serve this directory's ledger with its page until a signal. `ready` is told the address once it listens.

    The page shows files of these repositories, and of no others.
    """
    from batonpass.dispatch.alarm_watch import alarm_watch  # noqa: PLC0415 - only servers need it
    from batonpass.dispatch.egress import Egress  # noqa: PLC0415 - only servers need it
    from batonpass.dispatch.egress_rule import EgressRule  # noqa: PLC0415 - as above
    from batonpass.dispatch.side_work import side_work  # noqa: PLC0415 - as above
    from batonpass.dispatch.webhook_sender import told_beside  # noqa: PLC0415 - as above
    from batonpass.server.app import make_app  # noqa: PLC0415 - needs the extra
    from batonpass.server.boundary import hosts_for  # noqa: PLC0415 - as above
    from batonpass.server.control_plane import ControlPlane  # noqa: PLC0415 - as above
    from batonpass.server.listener import bound, listen  # noqa: PLC0415 - as above

    logging.basicConfig(format="%(asctime)s %(name)s %(message)s", level=logging.WARNING)
    if app is None:
        own_settings()  # before anybody can connect: the ledger may not be ours to show
    with bound(place) as (opened, address), closing(_relay(app)) as relay:
        rule = EgressRule(read_egress(find_policy_file(settings().policy)))
        egress = Egress(rule)
        plane = ControlPlane.over(relay, egress=egress, home=settings().home)
        grpc = None if grpc_port is None else _grpc(place, grpc_port, names)
        a2a, mcp = _a2a(plane, rule, _reached(place, address, names), grpc), _mcp(plane)
        served = make_app(
            plane,
            hosts=hosts_for(place.host, names),
            mounts=[*people_routes(plane, repositories), *a2a.routes, *([] if mcp is None else [mcp.route])],
            lifespans=[] if mcp is None else [mcp.lifespan],
        )

        def begin() -> None:
            ready(plane, address)
            if grpc is not None:
                tell(f"  A2A over gRPC:  {grpc.address}")

        with told_beside(relay, egress), side_work(plane.metrics.run_until, "metrics"), alarm_watch(relay):
            listen(served, place, opened, ready=begin, beside=[a2a])


def _mcp(plane: "ControlPlane") -> "McpMount | None":
    """Return the door for MCP clients, if its extra is installed."""
    if not _has_mcp():
        return None
    from batonpass.cli.server.work_tree_answers import WorkTreeAnswers  # noqa: PLC0415 - only for this door
    from batonpass.server.mcp.http_mount import McpMount  # noqa: PLC0415 - as above

    # Whoever comes in over a network sees only files that git or the ledger knows already.
    return McpMount(plane, WorkTreeAnswers(only_known=True))


def _has_mcp() -> bool:
    return find_spec("mcp") is not None


def _relay(app: str | None) -> "Relay":
    from batonpass.relay import Relay, cards_of, home_of  # noqa: PLC0415 - only after the address is known to be free

    found = settings() if app else own_settings()  # a program names its ledger itself
    ledger, home = found.ledger, found.home
    cards = []
    if app is not None:
        from batonpass.cli.input.app_relay import relay_of  # noqa: PLC0415 - as above

        with relay_of(app) as given:
            ledger, home, cards = given.store.url, home_of(given), list(cards_of(given).values())
    # The programs that work on runs are elsewhere and outlive this process, so the keys of runs do too.
    relay = Relay.open(ledger, home=home, policy=found.policy, keys_in_files=True)
    relay.admin.identity()
    for card in cards:
        relay.introduce(card)
    return relay


def _reached(place: "ServerPlace", address: str, names: "Sequence[str]") -> str:
    # Behind a proxy, clients know it by its first name, and reach it over TLS.
    return f"https://{names[0]}" if names and place.proxies else address


def _grpc(place: "ServerPlace", port: int, names: "Sequence[str]") -> "GrpcPlace":
    from batonpass.server.a2a.settings import GrpcPlace  # noqa: PLC0415 - needs the extra
    from batonpass.server.listener import free_port  # noqa: PLC0415 - as above

    if find_spec("grpc") is None or find_spec("a2a") is None:
        raise MissingExtraError("A2A over gRPC", "grpc")
    free = free_port(place, port, "--grpc-port")
    named = names[0] if names and place.proxies else place.host
    host = f"[{named}]" if ":" in named else named
    return GrpcPlace(address=f"{host}:{free}", host=place.host, port=free, certificate=place.certificate, key=place.key)


def _a2a(plane: "ControlPlane", rule: "EgressRule", address: str, grpc: "GrpcPlace | None") -> "A2aDoor":
    from batonpass.policy.peer_table import read_peers  # noqa: PLC0415 - only servers need it
    from batonpass.server.a2a.mount import A2aDoor  # noqa: PLC0415 - needs the extra
    from batonpass.server.a2a.settings import A2aSettings  # noqa: PLC0415 - as above

    peers = read_peers(find_policy_file(settings().policy))
    return A2aDoor(plane, A2aSettings(address=address, grpc=grpc, egress=rule, peers=peers))


def _is_own(place: "ServerPlace") -> bool:
    from batonpass.server.boundary import is_loopback  # noqa: PLC0415 - needs the extra

    return is_loopback(place.host)


def own_user() -> str:
    """Return the name of the user who started this."""
    return os.environ.get("USER") or getpass.getuser()


def _tell_ready(relay: "Relay", address: str, code: str | None) -> None:
    with relay.store.view() as view:
        has_tokens = relay.store.founded() and next(find_tokens(view), None) is not None
    tell(f"serving {relay.store.url} at ", paint(address, bold=True))
    if code is not None:
        tell(f"  look at it, once within ten minutes:  {address}/enter#{code}")
    if not has_tokens:
        tell("  let an agent in:  batonpass token add service:NAME --role agent --may 'read:**'")
    tell(f"  the interface:  {address}/openapi.json" + (f", and for MCP clients {address}/mcp" if _has_mcp() else ""))
