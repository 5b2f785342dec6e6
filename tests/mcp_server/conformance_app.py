"""The real application on a port of its own, with the fixtures of the conformance suite; its files go to a directory.

The suite has no token, so one is added to requests that bring none, behind the check of Host and Origin.
"""

import sys
from datetime import timedelta
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from batonpass.relay import Relay
from batonpass.server.access import AccessLimits
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from batonpass.server.listener import ServerPlace, bound, listen
from batonpass.server.mcp.http_mount import McpMount
from tests.mcp_server.conformance_fixtures import furnish


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    """Return an application that lets everybody in with this token."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not any(name == b"authorization" for name, _ in scope["headers"]):
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]}
        await app(scope, receive, send)

    return serve


def main(directory: Path) -> None:
    """Serve until a signal. The address is written to a file once it listens."""
    home = directory / ".batonpass"
    with Relay.open(home / "ledger.db", home=home, keys_in_files=True) as relay:
        token = relay.admin.add_token("user:ana", "operator", by="user:ana", lasts=timedelta(hours=1)).text
        relay.start("Fix it", by="user:ana").hand_off("editor", "Edit it")
        plane = ControlPlane.over(relay, limits=AccessLimits(requests_per_second=10_000, burst=10_000))
        mount = McpMount(plane, furnish=furnish)
        app = make_app(plane, hosts=hosts_for("127.0.0.1"), mounts=[mount.route], lifespans=[mount.lifespan])
        place = ServerPlace(port=0)
        with bound(place) as (opened, address):

            def ready() -> None:
                (directory / "address").write_text(address)

            listen(with_token(app, token), place, opened, ready=ready)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
