"""A heartbeat: a lease is held for as long as somebody works under it."""

import threading
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from batonpass.errors import GrantError, LeaseLostError, StoreError
from batonpass.model.lease import Lease
from batonpass.relay import Relay

# Two renewals may fail before the lease runs out.
_BEATS: Final = 3


class Heartbeat:
    """Renews a lease at a third of its time while the block runs. Once it is lost, nothing is renewed any more.

    `ended` is told, once, if the grant of whoever works is revoked or has ended; its lease is held, so that it can say
    how far it came.
    """

    def __init__(
        self, relay: Relay, lease: Lease, lease_for: timedelta, *, ended: Callable[[GrantError], None] | None = None
    ) -> None:
        self._relay = relay
        self._lease = lease
        self._lease_for = lease_for
        self._ended = ended
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat-{lease.handoff}", daemon=True)

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

    def _beat(self) -> None:
        every = (self._lease_for / _BEATS).total_seconds()
        while not self._over.wait(every):
            try:
                self._relay.heartbeat(self._lease, self._lease_for)
            except LeaseLostError:
                # Whoever has it now ends our attempt; its run takes nothing more from us. There is nobody to stop here.
                return
            except GrantError as refused:
                if self._ended is not None:
                    self._ended(refused)
                    self._ended = None
            except StoreError:
                continue  # a store that comes back in time never noticed; else the lease is lost
