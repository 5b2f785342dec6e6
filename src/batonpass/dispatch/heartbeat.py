"""Heartbeats: they renew a lease for as long as somebody works under it."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Self

from batonpass.errors import GrantError, LeaseLostError, StoreError
from batonpass.model.ledger.lease import Lease
from batonpass.relay import Relay

# Two renewals may fail before the lease runs out.
_BEATS: Final = 3
# After this many looks without a lease the thread ends. Until then, the next lease needs no new thread.
_IDLE_LOOKS: Final = 10


class Heart:
    """Renews the leases of one worker in one thread. Safe to use from many threads.

    A thread for each handoff would cost as much as the receipts of the handoff. The thread starts with the first lease
    and ends when there was none for a while.
    """

    def __init__(self, relay: Relay, lease_for: timedelta) -> None:
        self.relay = relay
        self.lease_for = lease_for
        # It looks twice in each third of a lease, so every lease is renewed within that third.
        self._pause = (lease_for / _BEATS).total_seconds() / 2
        self._held: set[Heartbeat] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def hold(self, lease: Lease, *, ended: Callable[[GrantError], None] | None = None) -> "Heartbeat":
        """Return the context in which a lease is renewed.

        `ended` is called once if the grant of the run ends or is revoked. The lease is still renewed, so that the run
        can report how far it came.
        """
        return Heartbeat(self, lease, ended)

    def begin(self, beat: "Heartbeat") -> None:
        """Renew a lease from now on."""
        with self._lock:
            self._held.add(beat)
            # After a fork, the thread of the parent process does not run here, and `is_alive` says so.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._beat, name="batonpass-heartbeat", daemon=True)
                self._thread.start()

    def end(self, beat: "Heartbeat") -> None:
        """Stop renewing a lease."""
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
    """Renews a lease while the block runs. A lost lease is not renewed again."""

    def __init__(self, heart: Heart, lease: Lease, ended: Callable[[GrantError], None] | None) -> None:
        self.since = time.monotonic()  # the last renewal
        self._heart = heart
        self._lease = lease
        self._ended = ended
        self._over = False
        self._renewing = threading.Lock()

    def __enter__(self) -> Self:
        self._heart.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._heart.end(self)
        # A renewal that is under way finishes first. After that, nothing here can extend the lease.
        with self._renewing:
            self._over = True

    def renew(self, now: float) -> None:
        """Renew the lease, unless it is lost or nobody works under it any more."""
        with self._renewing:
            if self._over:
                return
            self.since = now
            try:
                self._heart.relay.heartbeat(self._lease, self._heart.lease_for)
            except LeaseLostError:
                # The next holder ends our attempt, and the store refuses what its run still writes. There is nobody to
                # stop here.
                self._over = True
            except GrantError as refused:
                if self._ended is not None:
                    self._ended(refused)
                    self._ended = None
            except StoreError:
                pass  # if the store is back in time, nothing happened; otherwise the lease is lost
