"""The MCP server over stdin and stdout, for the user of this machine and the ledger of this directory."""

import threading
from collections.abc import Callable
from typing import Any

import anyio
from mcp.server.stdio import stdio_server

from batonpass.model.base.ids import PrincipalId
from batonpass.relay import Relay
from batonpass.server.control_plane import ControlPlane
from batonpass.server.mcp.directory_answers import DirectoryAnswers
from batonpass.server.mcp.protocol_server import ProtocolServer
from batonpass.server.mcp.seat import McpSeat, local_seat


class LocalSeating:
    """Opens the ledger with the first request that needs it. Safe to use from many threads."""

    def __init__(self, relay: Callable[[], Relay], principal: PrincipalId) -> None:
        self._relay = relay
        self._principal = principal
        self._lock = threading.Lock()
        self._opened: tuple[Relay, McpSeat] | None = None

    def __call__(self, _: Any) -> McpSeat:  # noqa: ANN401 - the SDK's context, in which nothing says who it is
        """Return who sits there: always the same user."""
        with self._lock:
            if self._opened is None:
                relay = self._relay()
                self._opened = relay, local_seat(ControlPlane.over(relay), self._principal)
            return self._opened[1]

    def close(self) -> None:
        """Close the ledger, if it was opened."""
        with self._lock:
            if self._opened is not None:
                self._opened[0].close()
                self._opened = None


def serve_stdio(seating: LocalSeating, answers: DirectoryAnswers) -> None:
    """Serve until the client closes stdin."""
    own = ProtocolServer(seating, answers)
    try:
        anyio.run(_serve, own)
    finally:
        seating.close()


async def _serve(own: ProtocolServer) -> None:
    async with stdio_server() as (read, write):
        await own.server.run(read, write, own.server.create_initialization_options())
