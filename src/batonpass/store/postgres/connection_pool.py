"""A pool of connections that lends the one that came back last.

So a few connections do most of the work. A connection that was just used has its statements prepared, and its process
on the server has the needed data cached. Connections that are not needed stay at the bottom and are closed after a
while.

Ctrl-C may come between lending a connection and the borrower's note of it. So the pool keeps no reference to a lent
connection: a connection that nobody knows any more is closed by the interpreter, and takes nobody's place.
"""

import select
import threading
import time
import weakref
from collections.abc import Callable
from typing import Final

from psycopg.pq import TransactionStatus

from batonpass.errors import StoreShutError
from batonpass.store.postgres.prepared_statements import Connection

_IDLE_SECONDS: Final = 600.0
_IDLE: Final = TransactionStatus.IDLE


class ConnectionPool:
    """Lends connections and makes new ones on demand, at most `most` at a time. Safe to use from many threads."""

    def __init__(self, make: Callable[[], Connection], most: int) -> None:
        self._make = make
        self._most = most
        self._kept: list[tuple[Connection, _Known]] = []
        self._lent: dict[int, _Known] = {}  # by the id of the connection
        self._connecting: weakref.WeakSet[_Place] = weakref.WeakSet()
        self._closed = False
        self._lock = threading.Lock()
        self._free = threading.Condition(self._lock)
        self.waiting = 0  # threads that wait for a connection

    def take_quiet(self) -> Connection | None:
        """Return a connection that is idle and to which nothing has arrived unasked; None if there is no such."""
        with self._lock:
            if not self._kept:
                return None
            connection, known = self._kept.pop()
            self._lent[id(connection)] = known
        # Not under the lock: asking lets other threads run, and they would wait for us.
        if not known.unasked.poll(0):
            return connection
        self.give(connection)
        return None

    def take(self, seconds: float) -> Connection | None:
        """Return a connection; None if all stay lent for so many seconds. Raises a `StoreError` if none can be made."""
        with self._lock:
            if not self._kept and not self._has_room():
                self._await(seconds)
            if self._closed:
                raise StoreShutError("this ledger was closed; open it again")
            if self._kept:
                connection, known = self._kept.pop()
                self._lent[id(connection)] = known
                return connection
            if not self._has_room():
                return None
            place = _Place()
            self._connecting.add(place)
        made: Connection | None = None
        try:
            made = self._make()
        finally:
            with self._lock:
                self._connecting.discard(place)
                if made is not None:
                    self._lent[id(made)] = _Known(made)
                else:
                    self._free.notify()
        return made

    def give(self, connection: Connection) -> None:
        """Take a connection back. One that is closed, or inside a transaction, is not lent again."""
        # Of a connection that is closed or broken, libpq says that it does not know.
        useful = connection.pgconn.transaction_status == _IDLE
        unused = None
        with self._lock:
            known = self._lent.pop(id(connection))
            if useful and not self._closed:
                known.since = time.monotonic()
                self._kept.append((connection, known))
                if known.since - self._kept[0][1].since > _IDLE_SECONDS:
                    unused = self._kept.pop(0)[0]
            else:
                unused = connection
            if self.waiting:
                self._free.notify()
        if unused is not None:
            unused.close()

    def is_quiet(self, connection: Connection) -> bool:
        """Return whether nothing has arrived unasked: a server that closes an idle connection tells it so.

        This asks the operating system and not the server, so it costs microseconds. After a restart of the server, it
        saves most commits from being in doubt.
        """
        return not self._lent[id(connection)].unasked.poll(0)

    def close(self) -> None:
        """Close the idle connections now, and the lent ones when they come back."""
        with self._lock:
            self._closed, kept, self._kept = True, self._kept, []
            self._free.notify_all()
        for connection, _ in kept:
            connection.close()

    def _has_room(self) -> bool:
        if len(self._lent) + len(self._connecting) < self._most:
            return True
        self._lent = {number: known for number, known in self._lent.items() if known.reference() is not None}
        return len(self._lent) + len(self._connecting) < self._most

    def _await(self, seconds: float) -> None:
        self.waiting += 1
        try:
            self._free.wait_for(lambda: self._kept or self._closed or self._has_room(), seconds)
        finally:
            self.waiting -= 1


class _Known:
    """The pool's notes on a connection: whether it is lent, since when it is idle, and unexpected input."""

    __slots__ = ("reference", "since", "unasked")

    def __init__(self, connection: Connection) -> None:
        self.reference = weakref.ref(connection)
        self.since = 0.0
        self.unasked = select.poll()
        self.unasked.register(connection.fileno(), select.POLLIN)


class _Place:
    """A place that is kept for a connection while it is made; it goes with the thread that makes it."""

    __slots__ = ("__weakref__",)
