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
from batonpass.server.mcp.mcp_caller import McpCaller, local_caller
from batonpass.server.mcp.protocol_server import ProtocolServer


class LocalCaller:
    """The user of this machine as caller. Opens the ledger with the first request. Safe to use from many threads."""

    def __init__(self, relay: Callable[[], Relay], principal: PrincipalId) -> None:
        self._relay = relay
        self._principal = principal
        self._lock = threading.Lock()
        self._opened: tuple[Relay, McpCaller] | None = None

    def __call__(self, _: Any) -> McpCaller:  # noqa: ANN401 - the SDK's context, in which nothing says who it is
        """Return the caller: always the same user."""
        with self._lock:
            if self._opened is None:
                relay = self._relay()
                self._opened = relay, local_caller(ControlPlane.over(relay), self._principal)
            return self._opened[1]

    def close(self) -> None:
        """Close the ledger, if it was opened."""
        with self._lock:
            if self._opened is not None:
                self._opened[0].close()
                self._opened = None


def serve_stdio(find_caller: LocalCaller, answers: DirectoryAnswers) -> None:
    """Serve until the client closes stdin."""
    own = ProtocolServer(find_caller, answers)
    try:
        anyio.run(_serve, own)
    finally:
        find_caller.close()


async def _serve(own: ProtocolServer) -> None:
    async with stdio_server() as (read, write):
        await own.server.run(read, write, own.server.create_initialization_options())
