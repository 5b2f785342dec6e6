"""`/mcp`: the MCP server over streamable HTTP, behind the boundary and the doorkeeper of every other route.

The SDK takes a second to import, so it is loaded with the first request: a server that nobody asks over MCP starts as
quickly as before.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from batonpass.errors import BatonpassError
from batonpass.server.app import PROOF, in_thread, let_in
from batonpass.server.boundary import refused
from batonpass.server.control_plane import ControlPlane
from batonpass.server.mcp.directory_answers import DirectoryAnswers
from batonpass.server.mcp.mcp_caller import McpCaller, caller_by_token

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH: Final = "/mcp"
_CALLER: Final = "batonpass.mcp_caller"
_THREADS: Final = 10
_MOST_SESSIONS: Final = 1_000
_IDLE_SECONDS: Final = 30 * 60


class McpMount:
    """Serves MCP to callers with a token. Every request is let in anew, so a revoked token ends its sessions too."""

    def __init__(
        self,
        plane: ControlPlane,
        answers: DirectoryAnswers | None = None,
        *,
        furnish: "Callable[[Server[Any]], None] | None" = None,
    ) -> None:
        """`furnish` may add handlers to the server; the tests of conformance do."""
        self._plane = plane
        self._answers = answers
        self._furnish = furnish
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._turn = asyncio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None
        self._stop = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    @property
    def route(self) -> Route:
        """Return its route."""
        return Route(PATH, self)

    @property
    def is_loaded(self) -> bool:
        """Return whether somebody has asked over MCP."""
        return self._manager is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        try:
            caller = await in_thread(self._threads, partial(let_in, self._plane, request))
        except BatonpassError as error:
            await refused(error)(scope, receive, send)
            return
        scope[_CALLER] = caller_by_token(self._plane, caller, request.headers.get(PROOF))
        manager = await self._open()
        from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser  # noqa: PLC0415 - see above
        from mcp.server.auth.provider import AccessToken  # noqa: PLC0415 - see above

        # A session belongs to the token that began it: the SDK compares this, and answers others as if there were none.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=caller.token.id, scopes=[]))
        await manager.asgi_app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """End every session when the server ends."""
        try:
            yield
        finally:
            self._stop.set()
            if self._serving is not None:
                await self._serving

    async def _open(self) -> "StreamableHTTPSessionManager":
        async with self._turn:
            if self._manager is None:
                manager = await in_thread(self._threads, self._make)
                ready = asyncio.Event()
                self._serving = asyncio.create_task(self._serve(manager, ready))
                await ready.wait()
                self._manager = manager
        return self._manager

    async def _serve(self, manager: "StreamableHTTPSessionManager", ready: asyncio.Event) -> None:
        # In a task of its own: the tasks of sessions belong to it, and not to the request that happened to be first.
        async with manager.run():
            ready.set()
            await self._stop.wait()

    def _make(self) -> "StreamableHTTPSessionManager":
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - see above

        from batonpass.server.mcp.protocol_server import ProtocolServer  # noqa: PLC0415 - see above

        own = ProtocolServer(_caller_of, self._answers)
        if self._furnish is not None:
            self._furnish(own.server)
        return StreamableHTTPSessionManager(
            own.server,
            security_settings=None,  # Host and Origin were checked at the boundary
            max_request_body_size=self._plane.limits.body_bytes,
            max_sessions=_MOST_SESSIONS,
            session_idle_timeout=_IDLE_SECONDS,
        )


def _caller_of(asked: Any) -> McpCaller:  # noqa: ANN401 - the SDK's context, which is not imported here
    caller: McpCaller = asked.request.scope[_CALLER]
    return caller
