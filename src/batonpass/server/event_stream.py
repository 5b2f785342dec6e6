"""Server-sent events: each stream reads from the ledger by its own position, so a slow client keeps nobody waiting.

One look at the ledger serves all streams that wait. A client that was gone sends the last id that it has, and misses
nothing: positions have no gaps, and every receipt gets one.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse

from batonpass.errors import BatonpassError, InvalidValueError, TooManyRequestsError
from batonpass.server.answer import json_bytes
from batonpass.server.control_plane import ControlPlane
from batonpass.server.endpoint import ApiRequest
from batonpass.server.ledger_pulse import LOOK_EVERY, InThread, LedgerPulse
from batonpass.server.resources.events import EventsRead, read_events

LAST_EVENT: Final = "last-event-id"
_ASK_AGAIN: Final = 10.0  # whether a caller who waits is still let in
_PING: Final = 15
_SLOWEST: Final = 30.0  # a client that takes longer for one part is let go, and resumes when it can
_BUSY_FOR: Final = 5


class EventStreams:
    """The streams of one server."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._open = 0
        self._pulse = LedgerPulse(plane.relay.store)

    def stream(self, asked: ApiRequest, first: EventsRead, in_thread: InThread) -> EventSourceResponse:
        """Return the answer to a request for events. Raises `TooManyRequestsError` if too many are open."""
        if self._open >= self._plane.limits.streams:
            raise TooManyRequestsError(_BUSY_FOR)
        return EventSourceResponse(
            self._events(asked, first, in_thread),
            ping=_PING,
            send_timeout=_SLOWEST,
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _events(
        self, asked: ApiRequest, first: EventsRead, in_thread: InThread
    ) -> AsyncIterator[ServerSentEvent]:
        self._open += 1
        try:
            read, asked_at = first, time.monotonic()
            while True:
                for position, kind, receipt in read.events:
                    yield ServerSentEvent(json_bytes(receipt).decode(), id=str(position), event=kind)
                while read.is_all and await self.last_position(in_thread) <= read.after:
                    if time.monotonic() - asked_at > _ASK_AGAIN:
                        break
                    await asyncio.sleep(LOOK_EVERY)
                try:
                    told = await in_thread(partial(read_events, asked, read.after))
                except BatonpassError:
                    return  # the token or the run is no longer the caller's; a new request is told why
                asked_at = time.monotonic()
                if isinstance(told, EventsRead):
                    read = told
        finally:
            self._open -= 1

    async def last_position(self, in_thread: InThread) -> int:
        """Return the position of the last receipt, as of a moment ago: one look serves all who wait."""
        return await self._pulse.last_position(in_thread)


def resumed_after(given: str | None) -> int | None:
    """Return the position in a `Last-Event-ID`; None if there is none. Raises `InvalidValueError`."""
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= len(str(2**53))):
        raise InvalidValueError("Last-Event-ID", "is the id of an event: a position")
    return int(given)
