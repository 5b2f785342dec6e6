"""The sweeper of a worker: it ends the attempts of dead workers, also while its own worker is busy."""

import threading
import time
from collections.abc import Callable

from batonpass.errors import StoreError
from batonpass.relay import Relay


class Sweeper:
    """Sweeps every so many seconds: in an idle worker, else in a thread of its own (`sweep_until`)."""

    def __init__(self, relay: Relay, holder: str, *, every: float, troubled: Callable[[StoreError], None]) -> None:
        self._relay = relay
        self._holder = holder
        self._every = every
        self._troubled = troubled
        self._due = 0.0
        self._turn = threading.Lock()

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

    def sweep_until(self, over: threading.Event) -> None:
        """Sweep until `over` is set, beside the workers."""
        # Half as often as it may be due: an idle worker sweeps by itself, and then there is nothing to do here.
        while not over.wait(self._every * 2):
            try:
                self.sweep_if_due()
            except StoreError as error:
                self._troubled(error)  # the next look may be luckier; the worker itself finds out what lasts
