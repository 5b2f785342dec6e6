"""Connections to one database: lent alive, kept for the next one, made again with patience when the server is away."""

import logging
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from batonpass.errors import StoreBusyError, StoreShutError, StoreUnavailableError
from batonpass.store.postgres.address import Address
from batonpass.store.postgres.failures import is_lost, is_transient, translated, unreached
from batonpass.store.sql import Queries

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Result = TypeVar("Result")

QUERIES: Final = Queries("batonpass.store.postgres")

_TURN_SECONDS: Final = 2.0
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 2.0
_TRIES: Final = 8

# Whoever has set up logging hears the pool; else what it says about a server that is away would go to standard error,
# beside our own sentence.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class Patience:
    """How long to go on trying, and how long to pause between tries: twice as long each time."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._pause = _FIRST_PAUSE_SECONDS
        self._conflicts = 0

    def left(self) -> float:
        """Return the seconds that are left."""
        return max(self._end - time.monotonic(), 0.0)

    def pause(self) -> bool:
        """Wait a little, and return whether there is time for another try."""
        time.sleep(min(self._pause, self.left()))
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)
        return self.left() > 0

    def forgives(self) -> bool:
        """Return whether to try again after a conflict: so many in a row are a fault, not a race."""
        self._conflicts += 1
        return self._conflicts < _TRIES and self.left() > 0


class Connections:
    """A few connections that write and a few that read: an open view never keeps an append waiting for its turn."""

    def __init__(self, address: Address, *, most: int, wait_for: float) -> None:
        self._address = address
        self._most = most
        self._wait_for = wait_for
        self._writers = _pool(address.writing, least=1, most=most)
        self._readers = _pool(address.reading, least=0, most=most)

    def open(self) -> None:
        """Begin to connect."""
        self._writers.open()
        self._readers.open()

    def close(self) -> None:
        """Close what is not lent, and what is lent when it comes back."""
        self._writers.close()
        self._readers.close()

    def patience(self) -> Patience:
        """Return the patience for one call."""
        return Patience(self._wait_for)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Lend a connection of its own, which is made now. Raises a `StoreError` that says why there is none."""
        try:
            connection = psycopg.connect(self._address.writing, autocommit=True)
        except psycopg.Error as error:
            raise unreached(error, self._address.shown) from None
        with connection:
            yield connection

    @contextmanager
    def writer(self, patience: Patience) -> Iterator[Connection]:
        """Lend a connection that writes."""
        with self._lent(self._writers, patience) as connection:
            yield connection

    @contextmanager
    def reader(self, patience: Patience) -> Iterator[Connection]:
        """Lend a connection that reads."""
        with self._lent(self._readers, patience) as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Lend a connection that reads, in a transaction that sees everything as it is now."""
        patience = self.patience()
        while True:
            with self.reader(patience) as connection:
                try:
                    connection.execute(QUERIES["begin_view"])
                except psycopg.Error as error:
                    self.recover(error, connection, patience)
                    continue
                try:
                    yield connection
                finally:
                    with suppress(psycopg.Error):
                        connection.rollback()
                return

    def repeat(self, act: Callable[[Connection], Result]) -> Result:
        """Do something that may be done twice, until its answer is heard. Raises a `StoreError`."""
        patience = self.patience()
        while True:
            with self.writer(patience) as connection:
                try:
                    return act(connection)
                except psycopg.Error as error:
                    self.recover(error, connection, patience)

    def recover(self, error: psycopg.Error, connection: Connection, patience: Patience) -> None:
        """Return when it makes sense to try again after an error. Raises what the error means if it does not."""
        if is_lost(error, connection):
            connection.close()
            self.reach(patience)
        elif not (is_transient(error) and patience.forgives()):
            raise translated(error, self._address.shown) from None

    def reach(self, patience: Patience) -> None:
        """Return when the server can be reached. Raises a `StoreError` when patience ends, or if it refuses us."""
        while True:
            try:
                with self.connect():
                    return
            except StoreUnavailableError:
                if not patience.pause():
                    raise

    @contextmanager
    def _lent(self, pool: ConnectionPool[Connection], patience: Patience) -> Iterator[Connection]:
        connection = self._take(pool, patience)
        try:
            yield connection
        finally:
            pool.putconn(connection)

    def _take(self, pool: ConnectionPool[Connection], patience: Patience) -> Connection:
        while True:
            try:
                connection = pool.getconn(timeout=min(_TURN_SECONDS, patience.left()))
            except PoolClosed:
                raise StoreShutError("this ledger was closed; open it again") from None
            except PoolTimeout:
                # The pool does not say why: the server is away, or all connections are lent.
                self.reach(patience)
                if not patience.left():
                    raise StoreBusyError(
                        f"all {self._most} connections to {self._address.shown} are in use; "
                        "close views that are not needed, or allow more connections",
                    ) from None
                continue
            if _is_quiet(connection):
                return connection
            connection.close()
            pool.putconn(connection)
            self.reach(patience)


def _pool(address: str, *, least: int, most: int) -> ConnectionPool[Connection]:
    # The pool is told not to try for long (0): it would begin with a pause of a second, and not say what is wrong.
    return ConnectionPool(
        address,
        kwargs={"autocommit": True},
        min_size=least,
        max_size=most,
        open=False,
        num_workers=1,
        reconnect_timeout=0,
    )


def _is_quiet(connection: Connection) -> bool:
    """Return whether nothing came in unasked: what a server says to an idle connection is that it closed it.

    This asks the operating system, not the server, so it costs microseconds; it saves most commits from being in doubt
    after a restart.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return not waiting.poll(0)
