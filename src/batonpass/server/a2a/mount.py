"""Where A2A is mounted. The SDK is imported at the first request: that takes longer than the server to start."""

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from batonpass.errors import MissingExtraError
from batonpass.model.ledger.run import RunState
from batonpass.server.a2a.incoming_task import CALLER
from batonpass.server.a2a.settings import CARD, SIMPLE_CARD, A2aSettings
from batonpass.server.boundary import refused
from batonpass.server.control_plane import ControlPlane

if TYPE_CHECKING:
    from batonpass.server.a2a.opened_door import OpenedDoor

_SDK: Final = frozenset({"a2a", "google", "grpc", "httpx", "jsonrpc"})


class A2aDoor:
    """A2A as a door of a server. It opens at its first request, or when the server begins and has tasks."""

    def __init__(self, plane: ControlPlane, settings: A2aSettings) -> None:
        self._plane = plane
        self._settings = settings
        self._opened: OpenedDoor | None = None
        self._opening = asyncio.Lock()
        self._beginning: asyncio.Task[object] | None = None

    @property
    def routes(self) -> list[BaseRoute]:
        """Return the routes of A2A, for `make_app`."""
        # Not a mount: the door knows its whole paths, and its cards are beside them.
        return [Route(path, self) for path in (CARD, SIMPLE_CARD, "/a2a/{rest:path}")]

    async def begin(self) -> None:
        """Go on with tasks that are not over, and listen for gRPC. It runs in the event loop of the server.

        Raises `ServerNotStartedError`, and `MissingExtraError` where gRPC is asked for.
        """
        if self._settings.grpc is not None:
            await self._open()
        elif self._has_tasks():
            self._beginning = asyncio.get_running_loop().create_task(self._open())

    async def end(self, drain_seconds: float) -> None:
        """Let requests that are under way over gRPC finish for so long. Over HTTP, the server does."""
        if self._opened is not None:
            await self._opened.end(drain_seconds)

    def _has_tasks(self) -> bool:
        store = self._plane.relay.store
        if not store.founded():
            return False
        with store.view() as view:
            return next(view.find_runs(agent=CALLER, states=(RunState.OPEN,), roots=True), None) is not None

    async def _open(self) -> "OpenedDoor":
        async with self._opening:
            if self._opened is None:
                opened = await asyncio.to_thread(self._make)
                await opened.begin()
                self._opened = opened
            return self._opened

    def _make(self) -> "OpenedDoor":
        try:
            from batonpass.server.a2a.opened_door import OpenedDoor  # noqa: PLC0415 - the SDK
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in _SDK:
                raise
            raise MissingExtraError("A2A", "a2a") from None
        return OpenedDoor(self._plane, self._settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            opened = await self._open()
        except MissingExtraError as error:
            await refused(error)(scope, receive, send)
            return
        await opened.app(scope, receive, send)
