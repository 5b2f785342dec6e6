"""One ledger in one SQLite file: append, and read. The rules come as values with each receipt; SQL stands beside.

An append reads nothing: what a receipt expects is compared as it is written. A transaction takes part of the group
commit, and between processes its turn.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import apsw

from batonpass.errors import ConflictError, StoreError
from batonpass.model.change import Change, change_of
from batonpass.model.receipt import Signed
from batonpass.store.admission import explain_entry
from batonpass.store.group_commit import GroupCommit, RefusedError
from batonpass.store.port import Stored, View
from batonpass.store.reads import Reads, Row
from batonpass.store.sql import read_queries, read_sql
from batonpass.store.sqlite.turn import FairLock
from batonpass.system import RealSystem, System, Turn

SCHEMA_VERSION: Final = 1
_APPLICATION_ID: Final = 0x42_61_74_6F  # "Bato"
_BUSY_MILLISECONDS: Final = 30_000
_CHECKPOINT_PAGES: Final = 2_000
_SQL: Final = read_queries("shared.sql", "sqlite/queries.sql")
_OPEN_STREAM: Final = _SQL["open_stream"]
_ADVANCE_STREAM: Final = _SQL["advance_stream"]
_APPEND_RECEIPT: Final = _SQL["append_receipt"]


class Connection(Protocol):
    """What the store needs of a connection. `execute` is the only way to SQL; BEGIN and COMMIT stand alone."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def execute(self, sql: str, bindings: Any = None) -> Any:  # noqa: ANN401 - as the driver has it
        """Run a statement, and return what yields its rows."""
        ...

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class Entry(NamedTuple):
    """What is written together: receipts, and what each of them expects and makes."""

    signed: Sequence[Signed]
    changes: Sequence[Change]


class _MismatchError(Exception):
    """A receipt found another state than it expects."""

    def __init__(self, change: Change) -> None:
        super().__init__(change.stream)


def open_connection(path: Path) -> Connection:
    """Open a connection to a ledger, durable at each commit."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(_BUSY_MILLISECONDS)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", _CHECKPOINT_PAGES)
    connection.pragma("secure_delete", 1)  # erased words are overwritten, not only unlinked
    return connection


class SqliteStore(Reads):
    """Keeps receipts in one file. All threads of a process share one."""

    def __init__(
        self,
        path: Path,
        *,
        system: System | None = None,
        connect: Callable[[Path], Connection] = open_connection,
        turn: Turn | None = None,
    ) -> None:
        super().__init__(system or RealSystem())
        self.url = f"sqlite:///{path}"
        self._path = path
        self._connect = connect
        self._turn = turn or FairLock(path.with_suffix(".lock"))
        try:
            self._writer = self._open_writer(path)
            self._reader = connect(path)
        except apsw.Error as error:
            detail = f"{path} cannot be opened as a ledger: {error}"
            raise StoreError(detail, code="store.not_a_ledger") from error
        self._reading = self._system.lock()
        self._execute = self._writer.execute
        self.append = GroupCommit(self, self._turn, self._system).run

    def _open_writer(self, path: Path) -> Connection:
        if not path.exists() or not path.stat().st_size:
            with self._turn:  # two processes may create it at once
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))  # what is beside it has its mode
                return self._prepared(path)
        # Not in its turn: who only reads does not wait for a writer that was stopped.
        return self._prepared(path)

    def _prepared(self, path: Path) -> Connection:
        connection = self._connect(path)
        try:
            _prepare_schema(connection, path)
        except BaseException:
            connection.close()  # an error that is kept would keep the transaction, and all others waiting
            raise
        return connection

    def prepare(self, entry: Sequence[Signed]) -> Entry:
        """Return an entry with what each of its receipts expects and makes."""
        return Entry(entry, [change_of(signed) for signed in entry])

    def write(self, batch: Sequence[Entry]) -> None:
        """Write a batch in one transaction. Called by the leader of the group commit."""
        self.roll_back()
        try:
            self._execute("BEGIN IMMEDIATE")
            for entry in batch:
                for signed, change in zip(entry.signed, entry.changes, strict=True):
                    self._apply(signed, change)
        except _MismatchError as mismatch:
            self._execute("ROLLBACK")
            if len(batch) > 1:  # each is written alone now, and its own reason looked up
                raise RefusedError(ConflictError(str(mismatch))) from None
            if self._is_written(batch[0]):
                return  # the same bytes again: their caller did not hear the first answer
            # By the rows as they were before it: those that it had moved already would give another reason.
            reason = explain_entry(batch[0].changes, self)
            raise RefusedError(reason or ConflictError(f"{mismatch} changed meanwhile")) from None
        except apsw.Error as error:
            self.roll_back()
            if isinstance(error, apsw.ConstraintError | apsw.TooBigError | apsw.MismatchError):
                detail = f"the ledger does not take this receipt: {error}"
                raise RefusedError(ConflictError(detail, code="ledger.precondition_failed")) from error
            raise StoreError(f"the ledger cannot be written: {error}") from error
        try:
            self._execute("COMMIT")
        except apsw.FullError as error:  # the only failure of a commit of which it is known that nothing was written
            self.roll_back()
            raise StoreError(f"the ledger cannot be written: {error}") from error

    def _is_written(self, entry: Entry) -> bool:
        return all(
            (row := self._execute(_SQL["get_receipt"], {"stream": one.stream, "seq": one.receipt.seq}).fetchone())
            and row[0] == one.payload
            for one in entry.signed
        )

    def _apply(self, signed: Signed, change: Change) -> None:
        """Write one receipt with the rows that follow from it. Raises `_MismatchError` if one is not as it expects."""
        execute, changes = self._execute, self._writer.changes
        if change.moves is not None:
            self._apply_handoff(change)
        if change.seq == 1:
            execute(_OPEN_STREAM, _stream_values(change))
        else:
            made = (change.seq, change.head, change.epoch, change.state, change.recorder, change.at)
            expected = (change.stream, change.previous, change.from_epoch, change.from_recorder)
            execute(_ADVANCE_STREAM, made + expected)
        if not changes():
            raise _MismatchError(change)
        execute(
            _APPEND_RECEIPT,
            (signed.stream, change.seq, signed.payload, signed.signature, signed.cosignature, signed.contents),
        )
        if change.opens_call is not None:
            self._write(change, "open_call", change.opens_call, change.call_run, change.call_key)
        if change.closes_call is not None:
            self._write(change, "close_call", change.closes_call, change.call_run)
        if change.settles_call is not None:
            execute(_SQL["close_call"], (change.settles_call, change.call_run))
        if change.charges or change.touches or change.request or change.fenced or change.genesis or change.revokes:
            self._apply_rest(change)

    def _apply_handoff(self, change: Change) -> None:
        c = change
        if c.from_states is None:
            offer = (c.moves, c.stream, c.root, c.seq, c.to_agent, c.to_state, c.to_last, c.at)
            self._write(change, "open_handoff", *offer)
            return
        made = (c.to_state, c.to_attempt, c.to_run, c.to_last)
        expected = (c.from_states, c.from_attempt, c.from_run, c.from_last, c.from_parent, c.from_agent)
        self._write(change, "move_handoff", *made, c.moves, *expected)
        if c.holder is not None:
            self._expect(change, "is_holder", c.holder, c.holder_epoch)
        if c.attempt_run is not None:
            self._expect(change, "is_attempt", c.attempt_run, c.moves)

    def _apply_rest(self, change: Change) -> None:
        if change.genesis is not None:
            if change.founds:
                self._execute(_SQL["found_ledger"], (change.genesis,))
            self._expect(change, "has_genesis", change.genesis)
        if change.fenced is not None:
            fence = (change.fenced_state, change.fenced, change.fenced_seq, change.fenced_head)
            self._write(change, "fence_stream", *fence)
        for account in (change.charges or "").split():
            if self._execute(_SQL["is_revoked"], {"account": account}).fetchone():
                raise _MismatchError(change)
        if change.request is not None:
            values = (change.request, change.request_part, change.fingerprint, change.stream, change.seq)
            self._write(change, "add_request", *values)
        if change.revokes is not None:
            self._write(change, "revoke", change.revokes)
        for target in (change.touches or "").split():
            self._execute(_SQL["touch"], (target, change.stream, change.seq))

    def _write(self, change: Change, query: str, *values: object) -> None:
        self._execute(_SQL[query], values)
        if not self._writer.changes():
            raise _MismatchError(change)

    def _expect(self, change: Change, query: str, *values: object) -> None:
        if self._execute(_SQL[query], values).fetchone() is None:
            raise _MismatchError(change)

    def roll_back(self) -> None:
        """Leave no transaction open."""
        if self._writer.in_transaction:
            self._execute("ROLLBACK")

    def _all(self, query: str, **values: object) -> list[Row]:
        self._require_own()
        with self._reading:
            try:
                rows: list[Row] = self._reader.execute(_SQL[query], values).fetchall()
            except (apsw.Error, UnicodeDecodeError) as error:
                raise StoreError(f"the ledger cannot be read: {error}") from error
        return rows

    @contextmanager
    def view(self) -> Iterator[View]:
        """Return the ledger at one moment: a read transaction on a connection of its own."""
        self._require_own()
        connection = self._connect(self._path)
        try:
            connection.execute("BEGIN")
            _require_schema(connection, self._path)
            yield _SqliteView(connection)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise StoreError(f"the ledger cannot be read: {error}") from error
        finally:
            connection.close()

    def close(self) -> None:
        """Close the files. The log is folded back by the last process that closes. After a fork none is closed."""
        if not self._is_own():
            return
        self._writer.close()
        self._reader.close()
        close = getattr(self._turn, "close", None)
        if close is not None:
            close()


class _SqliteView:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def receipts(self) -> Iterator[Stored]:
        """Yield every receipt, by position."""
        yield from self._connection.execute(_SQL["all_receipts"])

    def damage(self) -> str | None:
        """Return what SQLite finds wrong with its pages and indexes; None if nothing."""
        ((found,),) = self._connection.execute("PRAGMA integrity_check(1)")
        return None if found == "ok" else str(found)

    def rows(self, table: str) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a derived table, by its key."""
        yield from self._connection.execute(_SQL[f"all_{table}"])


def _stream_values(c: Change) -> Row:
    ids = (c.stream, c.root, 1, c.head, c.epoch, c.state, c.recorder, c.at, c.at)
    return (*ids, c.agent, c.principal, c.handoff, c.attempt)


def _prepare_schema(writer: Connection, path: Path) -> None:
    """Make the tables of a new ledger. Raises `StoreError` if the file is something else, or of another version."""
    ((application,),) = writer.execute("PRAGMA application_id").fetchall()
    ((version,),) = writer.execute("PRAGMA user_version").fetchall()
    if (application, version) == (_APPLICATION_ID, SCHEMA_VERSION):
        _require_schema(writer, path)
        return
    ((tables,),) = writer.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    if tables or version or application:
        detail = f"{path} is not a ledger of this version of Batonpass: open it with the version that made it"
        raise StoreError(detail, code="store.not_a_ledger")
    writer.execute("BEGIN IMMEDIATE")
    if writer.execute("SELECT count(*) FROM sqlite_schema").fetchall() != [(0,)]:  # another process was first
        writer.execute("ROLLBACK")
        _prepare_schema(writer, path)
        return
    writer.execute(read_sql("sqlite/schema.sql"))
    writer.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    writer.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    writer.execute("COMMIT")


def _require_schema(connection: Connection, path: Path) -> None:
    """Raise `StoreError` unless the file has the tables, indexes and views of this version, and nothing else.

    A trigger would write in our commits, and another view would show readers what the verifier does not read.
    """
    # A trigger may have any name but one that begins so, and `_` would match any letter.
    query = "SELECT name, type, tbl_name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat[0-9]' ORDER BY name"
    own = apsw.Connection(":memory:")
    own.execute(read_sql("sqlite/schema.sql"))
    strange = set(own.execute(query)) ^ set(connection.execute(query))
    own.close()
    if strange:
        names = ", ".join(sorted({str(name) for name, *_ in strange}))
        detail = f"{path} has tables, views or triggers that this version did not make, or lacks its own: {names}"
        raise StoreError(detail, code="store.not_a_ledger")
