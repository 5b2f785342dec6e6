"""The sweeper of a worker: it ends what dead workers left behind, also while its own worker is busy."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from batonpass.errors import StoreError
from batonpass.relay import Relay


class Sweeper:
    """Sweeps every so many seconds while the block runs: by whoever works when idle, else in a thread of its own."""

    def __init__(self, relay: Relay, holder: str, *, every: float, troubled: Callable[[StoreError], None]) -> None:
        self._relay = relay
        self._holder = holder
        self._every = every
        self._troubled = troubled
        self._due = 0.0
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sweep_on, name="batonpass-sweeper", daemon=True)

    def sweep_if_due(self) -> None:
        """Sweep, unless somebody here has done so within the last while or does so now. Raises a `StoreError`."""
        if time.monotonic() < self._due or not self._turn.acquire(blocking=False):
            return
        try:
            self._due = time.monotonic() + self._every
            self._relay.sweep(holder=self._holder)
        finally:
            self._turn.release()

    def hurry(self) -> None:
        """Let the next sweep be due now."""
        self._due = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _sweep_on(self) -> None:
        # Half as often as it may be due: an idle worker sweeps by itself, and then there is nothing to do here.
        while not self._over.wait(self._every * 2):
            try:
                self.sweep_if_due()
            except StoreError as error:
                self._troubled(error)  # the next look may be luckier; the worker itself finds out what lasts
