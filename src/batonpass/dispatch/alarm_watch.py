"""The watch over alarms: weeks are compared from time to time, beside whoever works or serves.

Comparing costs something, and an alarm that no rule reads stops nobody. So it is done only where a rule of the policy
reads alarms; `batonpass alarm check` does it in any case.
"""

import threading
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from batonpass.errors import StoreError
from batonpass.relay import Relay

EVERY: Final = timedelta(hours=1)


class AlarmWatch:
    """Checks alarms at the beginning of a block and every hour while it runs, in a thread of its own."""

    def __init__(
        self, relay: Relay, *, every: timedelta = EVERY, troubled: Callable[[StoreError], None] = lambda _: None
    ) -> None:
        self._relay = relay
        self._every = every
        self._troubled = troubled
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="batonpass-alarms", daemon=True)

    def __enter__(self) -> Self:
        if self._relay.reads_alarms:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            try:
                self._relay.check_alarms()
            except StoreError as error:
                self._troubled(error)  # the next look may be luckier
            self._over.wait(self._every.total_seconds())
