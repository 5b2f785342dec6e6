"""A heartbeat: a lease is held for as long as somebody works under it."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from batonpass.errors import GrantError, LeaseLostError, StoreError
from batonpass.model.ledger.lease import Lease
from batonpass.relay import Relay

# Two renewals may fail before the lease runs out.
_BEATS: Final = 3
# So many times nothing was held when it was looked: whoever works again by then need not start another thread.
_IDLE_LOOKS: Final = 10


class Heart:
    """Renews the leases of one worker in a thread that they share. Safe to use from many threads.

    A thread for each handoff would cost as much as what the handoff writes. It is started with the first lease, and
    ends when nothing was held for a while.
    """

    def __init__(self, relay: Relay, lease_for: timedelta) -> None:
        self.relay = relay
        self.lease_for = lease_for
        # It looks twice in a third of a lease, so none is renewed later than at that.
        self._pause = (lease_for / _BEATS).total_seconds() / 2
        self._held: set[Heartbeat] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def hold(self, lease: Lease, *, ended: Callable[[GrantError], None] | None = None) -> "Heartbeat":
        """Return the context in which a lease is held.

        `ended` is told, once, if the grant of whoever works is revoked or has ended; its lease is held on, so that it
        can say how far it came.
        """
        return Heartbeat(self, lease, ended)

    def begin(self, beat: "Heartbeat") -> None:
        """Renew a lease from now on."""
        with self._lock:
            self._held.add(beat)
            # In a process that was forked, the thread of its parent is not there, and does not say that it is.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._beat, name="batonpass-heartbeat", daemon=True)
                self._thread.start()

    def end(self, beat: "Heartbeat") -> None:
        """Renew a lease no longer."""
        with self._lock:
            self._held.discard(beat)

    def _beat(self) -> None:
        idle = 0
        while True:
            time.sleep(self._pause)
            now = time.monotonic()
            with self._lock:
                idle = 0 if self._held else idle + 1
                if idle > _IDLE_LOOKS:
                    self._thread = None
                    return
                due = [beat for beat in self._held if now - beat.since >= self._pause]
            for beat in due:
                beat.renew(now)


class Heartbeat:
    """Renews a lease while the block runs. Once it is lost, nothing is renewed any more."""

    def __init__(self, heart: Heart, lease: Lease, ended: Callable[[GrantError], None] | None) -> None:
        self.since = time.monotonic()  # when it was renewed last
        self._heart = heart
        self._lease = lease
        self._ended = ended
        self._over = False
        self._renewing = threading.Lock()

    def __enter__(self) -> Self:
        self._heart.begin(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._heart.end(self)
        # A renewal that is under way comes to its end first: afterwards, nobody holds the lease for us any more.
        with self._renewing:
            self._over = True

    def renew(self, now: float) -> None:
        """Hold the lease for longer, unless it is lost or nobody works under it any more."""
        with self._renewing:
            if self._over:
                return
            self.since = now
            try:
                self._heart.relay.heartbeat(self._lease, self._heart.lease_for)
            except LeaseLostError:
                # Whoever has it now ends our attempt; its run takes nothing more from us. There is nobody to stop here.
                self._over = True
            except GrantError as refused:
                if self._ended is not None:
                    self._ended(refused)
                    self._ended = None
            except StoreError:
                pass  # a store that comes back in time never noticed; else the lease is lost
