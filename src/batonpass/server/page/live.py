"""Live pages: a stream that says that something changed, and has no content. The page asks for that itself.

Names only: who may look is decided where the page is made, and nowhere else.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from itertools import islice
from typing import Final

import anyio
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse

from batonpass.errors import TooManyRequestsError
from batonpass.model.base.ids import RunId, TokenId
from batonpass.records.access_token import get_token
from batonpass.server.app import in_thread
from batonpass.server.control_plane import ControlPlane
from batonpass.server.event_stream import EventStreams
from batonpass.store.port import ReceiptQuery

_AT_MOST_EVERY: Final = 1.0  # seconds
_LOOK_EVERY: Final = 0.25
_ASK_AGAIN: Final = 10.0  # whether whoever waits is still let in
_PING: Final = 15
_SLOWEST: Final = 30.0
_BUSY_FOR: Final = 5


class LiveNews:
    """The streams of all pages that are open."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._streams = EventStreams(plane)
        self._open = 0

    def stream(
        self, token: TokenId, root: str | None, last: int | None, threads: anyio.CapacityLimiter
    ) -> EventSourceResponse:
        """Return the stream for one page, of one tree or of all, from a position on. Raises `TooManyRequestsError`."""
        if self._open >= self._plane.limits.streams:
            raise TooManyRequestsError(_BUSY_FOR)
        return EventSourceResponse(
            self._news(token, root, last, threads),
            ping=_PING,
            send_timeout=_SLOWEST,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _news(
        self, token: TokenId, root: str | None, last: int | None, threads: anyio.CapacityLimiter
    ) -> AsyncIterator[ServerSentEvent]:
        run = partial(in_thread, threads)
        self._open += 1
        try:
            after = await self._streams.last_position(run) if last is None else last
            asked_at = time.monotonic()
            # The page learns where it stands, so that after a lost connection it misses nothing.
            yield ServerSentEvent("", id=str(after), event="here")
            while True:
                position = await self._streams.last_position(run)
                if position > after and await run(partial(self._concerns, root, after, position)):
                    yield ServerSentEvent("", id=str(position), event="changed")
                    await asyncio.sleep(_AT_MOST_EVERY)
                after = max(after, position)
                if time.monotonic() - asked_at > _ASK_AGAIN:
                    if not await run(partial(self._is_let_in, token)):
                        return
                    asked_at = time.monotonic()
                await asyncio.sleep(_LOOK_EVERY)
        finally:
            self._open -= 1

    def _concerns(self, root: str | None, after: int, last: int) -> bool:
        if root is None:
            return True
        with self._plane.relay.store.view() as view:
            found = view.find_receipts(ReceiptQuery(root=RunId(root), first=after + 1, last=last))
            return next(islice(found, 1), None) is not None

    def _is_let_in(self, token: TokenId) -> bool:
        with self._plane.relay.store.view() as view:
            return get_token(view, token).is_valid(self._plane.clock.now())
