"""What the tests of the asynchronous face share."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from batonpass.aio import AsyncRelay
from batonpass.model.base.ids import RunId, StreamId
from batonpass.model.bodies.body import ToolFailed
from batonpass.relay import Relay
from batonpass.store.memory import MemoryStore
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

PATIENCE = 20.0


def a_relay(store: MemoryStore | None = None) -> AsyncRelay:
    return AsyncRelay(Relay(store or MemoryStore()))


def a_start(relay: AsyncRelay) -> Any:  # noqa: ANN401 - awaitable, and a context
    return relay.start("Fix invoice rounding", by="user:ana")


def kinds(relay: AsyncRelay, run: RunId) -> list[str]:
    with relay.store.view() as view:
        return [stored.kind for stored in view.find_receipts(ReceiptQuery(stream=StreamId(run)))]


def failures(relay: AsyncRelay) -> list[str]:
    """Return the codes of all calls that failed."""
    with relay.store.view() as view:
        bodies = [decode_receipt(stored.payload).body for stored in view.find_receipts(ReceiptQuery(kind="tool"))]
    return [body.error for body in bodies if isinstance(body, ToolFailed)]


def run_async(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), PATIENCE))
