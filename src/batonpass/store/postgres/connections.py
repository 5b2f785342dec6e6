"""The connections to one database: lent and taken back, and made again when the server was away."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, Self, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from batonpass.errors import StoreBusyError, StoreUnavailableError
from batonpass.store.postgres.address import Address
from batonpass.store.postgres.connection_pool import ConnectionPool
from batonpass.store.postgres.failures import is_lost, is_transient, translated, unreached
from batonpass.store.postgres.prepared_statements import (
    NOTHING,
    Asked,
    Connection,
    PreparedStatement,
    Row,
    Statements,
    ask,
    ask_all,
)
from batonpass.store.sql import Queries

__all__ = ["QUERIES", "STATEMENTS", "Connection", "Connections", "Patience", "Snapshot"]

Result = TypeVar("Result")

QUERIES: Final = Queries("batonpass.store.postgres")
STATEMENTS: Final = Statements(QUERIES)

_BEGIN: Final = STATEMENTS["begin"]
_ROLLBACK: Final = STATEMENTS["rollback"]

_TURN_SECONDS: Final = 2.0
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 2.0
_TRIES: Final = 8


class Patience:
    """How long to go on trying. Each pause between tries is twice as long as the one before."""

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
        """Return whether to try again after a conflict. Many in a row are a fault and not a race."""
        self._conflicts += 1
        return self._conflicts < _TRIES and self.left() > 0


class Connections:
    """Two pools, one for writing and one for reading, so that an open view never keeps an append waiting."""

    def __init__(self, address: Address, *, most: int, wait_for: float) -> None:
        self._address = address
        self._most = most
        self._wait_for = wait_for
        self._writers = ConnectionPool(self.new, most)
        self._readers = ConnectionPool(lambda: self._connect(address.reading), most)

    def close(self) -> None:
        """Close the idle connections now, and the lent ones when they come back."""
        self._writers.close()
        self._readers.close()

    def patience(self) -> Patience:
        """Return the patience for one call."""
        return Patience(self._wait_for)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Lend a new connection, and close it afterwards. Raises a `StoreError` that says why there is none."""
        with self.new() as connection:
            yield connection

    def new(self) -> Connection:
        """Return a new connection for writing that nobody else gets; the caller closes it. Raises a `StoreError`."""
        return self._connect(self._address.writing)

    @contextmanager
    def writer(self, patience: Patience) -> Iterator[Connection]:
        """Lend a connection for writing. Raises a `StoreError`."""
        connection = self._take(self._writers, patience)
        try:
            yield connection
        finally:
            self._writers.give(connection)

    def snapshot(self, *, at_once: bool = True) -> "Snapshot":
        """Return a snapshot. Its connection is taken now or, without `at_once`, at the first question."""
        patience = self.patience()
        return Snapshot(self, self.take_reader(patience) if at_once else None, patience)

    def take_reader(self, patience: Patience) -> Connection:
        """Return a connection for reading; the caller gives it back."""
        return self._take(self._readers, patience)

    def give_back_reader(self, connection: Connection) -> None:
        """Take a connection for reading back."""
        self._readers.give(connection)

    def repeat(self, act: Callable[[Connection], Result]) -> Result:
        """Run `act`, which must be safe to repeat, until its answer is known. Raises a `StoreError`."""
        patience = self.patience()
        while True:
            connection = self._take(self._writers, patience)
            try:
                return act(connection)
            except psycopg.Error as error:
                self.recover(error, connection, patience)
            finally:
                self._writers.give(connection)

    def recover(self, error: psycopg.Error, connection: Connection, patience: Patience) -> None:
        """Return if another try is sensible after an error, and wait for the server if needed.

        Raises a `StoreError` if not.
        """
        if is_lost(error, connection):
            connection.close()
            self.reach(patience)
        elif not (is_transient(error) and patience.forgives()):
            raise translated(error, self._address.shown) from None

    def reach(self, patience: Patience) -> None:
        """Return when the server can be reached.

        Raises a `StoreError` when patience ends, or if the server refuses us.
        """
        while True:
            try:
                with self.connect():
                    return
            except StoreUnavailableError:
                if not patience.pause():
                    raise

    def _connect(self, address: str) -> Connection:
        try:
            return psycopg.connect(address, autocommit=True)
        except psycopg.Error as error:
            raise unreached(error, self._address.shown) from None

    def _take(self, pool: ConnectionPool, patience: Patience) -> Connection:
        while True:
            # Nearly always one is there: who needs no patience is not asked how much is left.
            if (connection := pool.take_quiet()) is not None:
                return connection
            try:
                connection = pool.take(min(_TURN_SECONDS, patience.left()))
            except StoreUnavailableError:
                if not patience.pause():
                    raise
                continue
            if connection is None:
                if not patience.left():
                    raise StoreBusyError(
                        f"all {self._most} connections to {self._address.shown} are in use; "
                        "close views that are not needed, or allow more connections",
                    )
            elif pool.is_quiet(connection):
                return connection
            else:
                connection.close()
                pool.give(connection)
                self.reach(patience)


class Snapshot:
    """One moment of the ledger: a read transaction that begins with the first question. Belongs to one thread."""

    def __init__(self, connections: Connections, connection: Connection | None, patience: Patience) -> None:
        self._connections = connections
        self._lent = connection  # None: nothing was asked yet, or it was given back
        self._patience = patience
        self._begun = False

    def run(self, act: Callable[[Connection], Result]) -> Result:
        """Run `act` inside the transaction. If nothing was read before it, it is repeated until it is answered."""
        if self._begun:
            return act(self._reader())

        def begun(connection: Connection) -> Result:
            # Two statements, which no server prepares. After an interrupt at the wrong moment the driver would try to.
            connection.execute(QUERIES["begin_view"], prepare=False)
            return act(connection)

        return self._begin(begun)

    def ask(self, statement: PreparedStatement, values: Mapping[str, object]) -> list[Row]:
        """Return the rows that a statement finds at this moment. Raises an error of the driver."""
        return self.ask_all(((statement, values),))[0]

    def ask_all(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """Return the rows that each statement finds at this moment. Raises an error of the driver."""
        if self._begun:
            return ask_all(self._reader(), asked)
        return self._begin(lambda connection: ask_all(connection, ((_BEGIN, NOTHING), *asked))[1:])

    def ask_once(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """Return the rows that each statement finds now, before the snapshot begins. Raises a `StoreError`.

        All of them show the same moment, which is not the moment of the snapshot.
        """
        return self._until_answered(lambda connection: ask_all(connection, asked))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the transaction, and give the connection back."""
        if self._lent is not None:
            connection, self._lent = self._lent, None
            _end(connection)
            self._connections.give_back_reader(connection)

    def _begin(self, act: Callable[[Connection], Result]) -> Result:
        answer = self._until_answered(act)
        self._begun = True
        return answer

    def _until_answered(self, act: Callable[[Connection], Result]) -> Result:
        """Run `act` until the server answers. It is the first read of its view, so it can be repeated unnoticed."""
        while True:
            connection = self._reader()
            try:
                return act(connection)
            except psycopg.Error as error:
                _end(connection)
                self._connections.recover(error, connection, self._patience)
                self._lent = None
                self._connections.give_back_reader(connection)

    def _reader(self) -> Connection:
        if self._lent is None:
            self._lent = self._connections.take_reader(self._patience)
        return self._lent


def _end(connection: Connection) -> None:
    with suppress(psycopg.Error):
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            ask(connection, _ROLLBACK)
