"""One ledger in one PostgreSQL database: one round trip and one transaction for all appends that wait.

Receipts are signed before they are sent, so an append can be sent twice: the second finds the head that the first one
moved, and what stands there has the same bytes. An answer that is lost is therefore no unknown outcome, as long as the
server comes back.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus

from batonpass.errors import ConflictError, OutcomeUnknownError, StoreError
from batonpass.model.change import change_of
from batonpass.model.receipt import Signed
from batonpass.store.admission import explain_entry
from batonpass.store.group_commit import GroupCommit, RefusedError
from batonpass.store.port import Stored, View
from batonpass.store.postgres.encoding import encode_array, encode_change
from batonpass.store.reads import Reads, Row
from batonpass.store.sql import read_queries, read_sql
from batonpass.system import RealSystem, System

SCHEMA_VERSION: Final = 1
_VERSION: Final = f"batonpass ledger {SCHEMA_VERSION}"
_PATIENCE_SECONDS: Final = 30.0
_LARGEST_BATCH_BYTES: Final = 64 * 1024 * 1024  # a message of 1 GiB ends the connection
_APPEND: Final = b"append"

# Without these a backend that has lost its client, or a client whose server has lost its power, waits for hours.
_DEFAULTS: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "batonpass",
}
# A compare-and-set that waited must see what it waited for: read committed, whatever the database's default is.
_ALWAYS: Final = (
    r"-c default_transaction_isolation=read\ committed -c synchronous_commit=on -c lock_timeout=20s -c jit=off"
)
# A plan that was made while a table was small would read all of it when it has grown.
_BY_INDEX: Final = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off"

# What a server says of one that it refuses: our function, a value that fits no column, a constraint, a limit.
_MISMATCH: Final = "BP001"
_REFUSALS: Final = ("22", "23", "54")
_DEADLOCK: Final = "40P01"


def _for_driver(sql: str) -> str:
    """Return SQL with its parameters as the driver writes them; `::` is a cast."""
    return re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", sql)


_SQL: Final = {name: _for_driver(text) for name, text in read_queries("shared.sql", "postgres/queries.sql").items()}


class Entry:
    """What is written together: receipts, what each of them expects and makes, and both as they are sent."""

    __slots__ = ("changes", "rows", "signed", "was_lost")

    def __init__(self, signed: Sequence[Signed]) -> None:
        self.signed = signed
        self.changes = [change_of(one) for one in signed]
        self.rows = [encode_change(change, one) for change, one in zip(self.changes, signed, strict=True)]
        self.was_lost = False  # it was sent and no answer came: it may be written, whatever is heard of it later

    def lock_order(self) -> str:
        """Return by what a batch is sorted: handoffs first, and in one order, or two batches would lock each other."""
        return next((change.moves for change in self.changes if change.moves and change.from_states), "~")


class Answer(NamedTuple):
    """What the server says of a batch: an SQLSTATE, empty if it is written."""

    state: str
    detail: str = ""


class PostgresStore(Reads):
    """Keeps receipts in one database. All threads of a process share one."""

    def __init__(self, url: str, *, system: System | None = None) -> None:
        super().__init__(system or RealSystem())
        self.url = url
        self._reading = self._system.lock()
        try:
            with self._connect() as connection:
                _prepare_schema(connection)
            self._writer = self._connect_writer()
            try:
                self._reader = self._connect(_BY_INDEX)
            except BaseException:
                self._writer.close()
                raise
        except psycopg.Error as error:
            raise StoreError(f"the ledger cannot be opened: {error}") from error
        self.append = GroupCommit(self, nullcontext(), self._system).run

    def _connect(self, options: str = "") -> psycopg.Connection[Row]:
        given = conninfo_to_dict(self.url)
        settings: dict[str, Any] = {**_DEFAULTS, **given}
        settings["options"] = f"{given.get('options') or ''} {_ALWAYS} {options}"
        return psycopg.connect(**settings, autocommit=True)

    def _connect_writer(self) -> psycopg.Connection[Row]:
        connection = self._connect(_BY_INDEX)
        try:
            ((self._type,),) = connection.execute(_SQL["change_type"]).fetchall()
            connection.pgconn.prepare(_APPEND, _SQL["append"].encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def prepare(self, entry: Sequence[Signed]) -> Entry:
        """Return an entry as it is sent. Encoded by its own caller: the one that leads only joins the bytes."""
        return Entry(entry)

    def write(self, batch: Sequence[Entry]) -> None:
        """Write a batch in one transaction and one round trip. Called by the caller that leads the group commit."""
        rows = [row for entry in sorted(batch, key=Entry.lock_order) for row in entry.rows]
        if len(batch) > 1 and sum(map(len, rows)) > _LARGEST_BATCH_BYTES:
            raise RefusedError(ConflictError("too much for one message: each is written alone"))
        answer = self._send(batch, rows)

        def is_answered() -> bool:
            nonlocal answer
            answer = self._send(batch, rows)
            return answer is not None and answer.state != _DEADLOCK

        # To look after a cut would prove nothing: the old backend may still write. The same bytes, sent again, wait for
        # its locks, and then are written, or refused where they stand already. One of two batches that locked each
        # other is undone; it is sent again as well, but first each of it alone.
        if answer is None or (answer.state == _DEADLOCK and len(batch) == 1):
            self._system.wait(is_answered, _PATIENCE_SECONDS)
        if answer is None:
            raise OutcomeUnknownError("the answer was lost, and the server is away")
        if answer.state.startswith((_MISMATCH, _DEADLOCK, *_REFUSALS)):
            self._refuse(batch, answer)
        elif answer.state:
            detail = f"the ledger cannot be written: {answer.detail}"
            raise OutcomeUnknownError(detail) if any(entry.was_lost for entry in batch) else StoreError(detail)

    def _send(self, batch: Sequence[Entry], rows: Sequence[bytes]) -> Answer | None:
        """Send a batch; return None if no answer came. Raises `StoreError` if nothing of it was ever sent."""
        if self._writer.closed:
            try:
                self._writer = self._connect_writer()
            except psycopg.Error as error:
                if any(entry.was_lost for entry in batch):
                    return None
                raise StoreError(f"the ledger cannot be reached: {error}") from error
        connection = self._writer.pgconn
        try:
            # libpq's own call: the driver's cursor takes a tenth of a handoff. Ctrl-C waits for the answer.
            result = connection.exec_prepared(_APPEND, [encode_array(rows, self._type)], [1], 1)
        except psycopg.OperationalError:  # it could not even be sent, as far as one can tell
            result = None
        # Not by what it says: a server that shuts down may say so after it has committed. Idle is answered.
        if result is None or connection.transaction_status != TransactionStatus.IDLE:
            for entry in batch:
                entry.was_lost = True
            return None
        if result.status == ExecStatus.TUPLES_OK:
            return Answer("")
        state = result.error_field(DiagnosticField.SQLSTATE) or b"XX000"
        return Answer(state.decode(), result.get_error_message())

    def _refuse(self, batch: Sequence[Entry], answer: Answer) -> None:
        """Raise why a batch was refused, unless it is one entry that was written before."""
        if len(batch) > 1:  # each is written alone now, and its own reason looked up
            raise RefusedError(ConflictError(answer.detail))
        (entry,) = batch
        try:
            if all(self._is_written(signed) for signed in entry.signed):
                return  # the same bytes again: their caller did not hear the first answer
            reason = explain_entry(entry.changes, self)
        except StoreError as error:
            raise OutcomeUnknownError(f"it was refused, and nobody can tell why: {error}") from error
        if answer.state != _MISMATCH:
            reason = reason or ConflictError(
                f"the ledger does not take this receipt: {answer.detail}", code="ledger.precondition_failed"
            )
        raise RefusedError(reason or ConflictError(f"{entry.signed[0].stream} changed meanwhile"))

    def _is_written(self, signed: Signed) -> bool:
        rows = self._all("get_receipt", stream=signed.stream, seq=signed.receipt.seq)
        return bool(rows) and rows[0][0] == signed.payload

    def roll_back(self) -> None:
        """Leave no transaction open: a batch is one statement, which the server has done or undone."""

    def _all(self, query: str, **values: object) -> list[Row]:
        self._require_own()
        with self._reading:
            try:
                try:
                    return self._read(query, values)
                except psycopg.OperationalError:
                    if not self._reader.closed:
                        raise
                    return self._read(query, values)  # the server had ended the connection since the last read
            except psycopg.Error as error:
                raise StoreError(f"the ledger cannot be read: {error}") from error

    def _read(self, query: str, values: dict[str, object]) -> list[Row]:
        # An interrupt may have fallen into the answer before this one: then it is never read.
        if self._reader.pgconn.transaction_status != TransactionStatus.IDLE:
            self._reader.close()
            self._reader = self._connect(_BY_INDEX)
        return self._reader.execute(_SQL[query], values or None, prepare=True, binary=True).fetchall()

    @contextmanager
    def view(self) -> Iterator[View]:
        """Return the ledger at one moment: a transaction on a connection of its own.

        It begins when no append is under way. So each receipt that it has, and each that its rows follow from, has its
        last position; in any other moment one could still be committed before those that are seen.
        """
        self._require_own()
        connection: psycopg.Connection[Row] | None = None
        try:
            connection = self._connect()
            for query in ("hold_writers", "begin_view", "release_writers"):
                connection.execute(_SQL[query])
            yield _PostgresView(connection)
        except psycopg.Error as error:
            raise StoreError(f"the ledger cannot be read: {error}") from error
        finally:
            if connection is not None:
                connection.close()

    def close(self) -> None:
        """Close the connections. After a fork they are the parent's, and stay open."""
        if self._is_own():
            self._writer.close()
            self._reader.close()


class _PostgresView:
    _CHUNK = 500

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def receipts(self) -> Iterator[Stored]:
        """Yield every receipt, by position."""
        yield from self.rows("receipts")  # type: ignore[misc] # the columns of `all_receipts`

    def damage(self) -> str | None:
        """Return nothing: its indexes are the server's own, out of reach of who can only write rows."""
        return None

    def rows(self, table: str) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a derived table, by its key."""
        with self._connection.cursor(name=f"all_{table}") as cursor:
            cursor.itersize = self._CHUNK
            cursor.execute(_SQL[f"all_{table}"], binary=True)
            yield from cursor


def _prepare_schema(connection: psycopg.Connection[Row]) -> None:
    """Make the tables of a new ledger. Raises `StoreError` if they are of another version."""
    with connection.transaction():
        connection.execute(_SQL["begin_schema"])
        ((table, version),) = connection.execute(_SQL["schema_version"]).fetchall()
        if table is None:
            connection.execute(read_sql("postgres/schema.sql"))
            connection.execute(f"COMMENT ON TABLE receipts IS '{_VERSION}'")
        elif version != _VERSION:
            detail = "this database holds no ledger of this version of Batonpass: open it with the version that made it"
            raise StoreError(detail, code="store.not_a_ledger")
