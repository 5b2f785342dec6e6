"""The tables of LangGraph's savers, read without changing or locking them."""

import sqlite3
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from batonpass.adapters.session_files.database_copy import DatabaseCopy
from batonpass.adapters.session_files.told_values import as_mapping, as_text
from batonpass.adapters.trace_files.stored_values import decode_stored
from batonpass.errors import MissingExtraError
from batonpass.store.sql import Queries

_PACKAGE: Final = "batonpass.adapters.trace_files"
_SQLITE: Final = Queries(_PACKAGE, "checkpoints_sqlite.sql")
_POSTGRES: Final = Queries(_PACKAGE, "checkpoints_postgres.sql")
_AT_ONCE: Final = 100


class KeptThread(Struct, frozen=True):
    """A conversation, and how far it goes."""

    name: str
    checkpoints: int
    size: int
    last: str
    writes: int


class StoredCheckpoint(Struct, frozen=True):
    """One row: the graph at one moment, not decoded yet."""

    place: str  # the namespace of the graph in which it was made
    name: str
    kind: str
    data: bytes


class CheckpointTables(ABC):
    """The tables of a saver. All errors that it raises belong to `UNREADABLE_TABLES`."""

    @abstractmethod
    def ask(self, question: str, values: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an answer to a question that both savers answer."""

    @abstractmethod
    def values(self, thread: str, row: StoredCheckpoint) -> tuple[str | None, Mapping[str, Any]]:
        """Return the time of a checkpoint, and the values of its channels. Raises one of `UNREADABLE`."""

    def threads(self) -> Iterator[KeptThread]:
        """Yield all conversations."""
        for name, checkpoints, size, last, writes in self.ask("threads"):
            yield KeptThread(str(name), int(checkpoints), int(size or 0), str(last), int(writes))

    def checkpoints(self, thread: str) -> Iterator[StoredCheckpoint]:
        """Yield the checkpoints of a conversation and of all graphs in it, in the order of time."""
        return (
            StoredCheckpoint(str(row[0]), str(row[1]), row[2], row[3]) for row in self.ask("checkpoints", (thread,))
        )


class SqliteCheckpoints(CheckpointTables):
    """The file of the SQLite saver."""

    def __init__(self, path: Path) -> None:
        self._database = DatabaseCopy(path)

    def ask(self, question: str, values: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an answer."""
        return self._database.ask(_SQLITE[question], values)

    def values(self, thread: str, row: StoredCheckpoint) -> tuple[str | None, Mapping[str, Any]]:
        """Return the time of a checkpoint, and the values of its channels."""
        del thread
        told = as_mapping(decode_stored(row.kind, row.data))
        return as_text(told.get("ts")), as_mapping(told.get("channel_values"))


class PostgresCheckpoints(CheckpointTables):
    """The database of the PostgreSQL saver, as it was when it was first asked."""

    def __init__(self, address: str) -> None:
        try:
            import psycopg  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtraError("ledgers and checkpoints in PostgreSQL", "postgres") from None
        self._connection: psycopg.Connection[Any] = psycopg.connect(address)
        weakref.finalize(self, self._connection.close)
        self._connection.read_only = True
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._seen: dict[tuple[str, str], str] = {}  # the version of each channel that was told last
        self._questions = 0

    def ask(self, question: str, values: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of an answer, some at a time."""
        self._questions += 1
        with self._connection.cursor(f"batonpass_{self._questions}") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(_POSTGRES[question].encode(), values)
            for row in cursor:
                yield tuple(bytes(one) if isinstance(one, memoryview) else one for one in row)

    def values(self, thread: str, row: StoredCheckpoint) -> tuple[str | None, Mapping[str, Any]]:
        """Return the time of a checkpoint, and the changes in its channels since the previous one."""
        told = as_mapping(msgspec.json.decode(row.data))
        found = dict(as_mapping(told.get("channel_values")))  # small values are in the checkpoint itself
        for channel, version in as_mapping(told.get("channel_versions")).items():
            if self._seen.get((row.place, channel)) == str(version):
                continue
            self._seen[row.place, channel] = str(version)
            for kind, data in self.ask("value", (thread, row.place, channel, str(version))):
                found[channel] = decode_stored(kind, data)
        return as_text(told.get("ts")), found


def open_tables(source: str) -> CheckpointTables:
    """Return the tables of a saver, by its file or by the address of its database."""
    if source.startswith(("postgresql://", "postgres://")):
        return PostgresCheckpoints(source)
    return SqliteCheckpoints(Path(source))


def tables_failed() -> tuple[type[Exception], ...]:
    """Return the errors that reading a saver's tables may raise."""
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError:
        return (sqlite3.Error, OSError)
    return (sqlite3.Error, OSError, psycopg.Error)
