"""Whether something was recorded: one look at the ledger serves everybody who waits."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from batonpass.audit.feed import Feed
from batonpass.store.port import LedgerStore

LOOK_EVERY: Final = 0.25  # seconds

InThread = Callable[[Callable[[], object]], Awaitable[object]]


class LedgerPulse:
    """Knows how far a ledger goes, at most a quarter of a second late."""

    def __init__(self, store: LedgerStore) -> None:
        self._store = store
        self._looking = asyncio.Lock()
        self._looked_at = 0.0
        self._last = 0

    async def last_position(self, in_thread: InThread) -> int:
        """Return the position of the last receipt."""
        async with self._looking:
            if time.monotonic() - self._looked_at >= LOOK_EVERY:
                found = await in_thread(self.look)
                self._last, self._looked_at = found if isinstance(found, int) else self._last, time.monotonic()
        return self._last

    def look(self) -> int:
        """Return the position of the last receipt, from the ledger."""
        Feed(self._store).sequence()
        with self._store.view() as view:
            return view.last_position()
