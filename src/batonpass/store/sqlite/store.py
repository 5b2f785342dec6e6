"""The SQLite store: durable when `append` returns, shared by threads and processes, each waiting its turn."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from batonpass.errors import (
    NotALedgerError,
    StaleHeadError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreShutError,
    StoreUnavailableError,
)
from batonpass.model.entry import Entry
from batonpass.model.ids import ContentId
from batonpass.model.projection import root_key
from batonpass.model.seal import Seal
from batonpass.store import rows
from batonpass.store.home import home_of, prepare_home
from batonpass.store.migrate import AppliedMigration, Migration, find_migrations, pending
from batonpass.store.port import LedgerInfo
from batonpass.store.process import OwnProcess
from batonpass.store.sqlite.blobs import Blobs
from batonpass.store.sqlite.commit import GroupCommit
from batonpass.store.sqlite.connection import (
    APPLICATION_ID,
    BUSY_MILLISECONDS,
    grow_log,
    open_reader,
    open_writer,
    require_folded,
    require_place,
    translated,
)
from batonpass.store.sqlite.turnstile import Turnstile
from batonpass.store.sqlite.view import SqliteView
from batonpass.store.sqlite.writing import QUERIES, add_key, is_blob, write_entries, write_entry

_WAIT_SECONDS: Final = 30.0
_IDLE_READERS: Final = 8
# A process that writes this often is not a hook that is gone in a moment; and an erasure may have emptied the log.
_GROWN_AFTER: Final = 32
_GROWN_EVERY: Final = 4096


class SqliteStore:
    """Keeps a ledger in one file, and what is too large for it beside it."""

    largest_content: int | None = None

    def __init__(self, path: Path, *, wait_for: float = _WAIT_SECONDS) -> None:
        self.url = f"sqlite:///{path}"
        self.home = home_of(path)
        self._path = path
        self._process = OwnProcess()
        self._migrations = find_migrations("batonpass.store.sqlite")
        self._blobs = Blobs(self.home / "blobs")
        self._wait_for = wait_for
        self._readers: list[apsw.Connection] = []
        self._readers_lock = threading.Lock()
        self._writer: Writer | None = None
        self._writer_lock = threading.Lock()
        self._shut = False
        self._frozen = False
        self._unclean = False
        try:
            self._prepare()
        except OSError as error:
            raise StoreUnavailableError(f"{path} cannot be opened: {error.strerror}; name another file") from None

    def founded(self) -> bool:
        """Return whether somebody has founded this ledger."""
        with self.view() as view:
            try:
                view.info()
            except NotALedgerError:
                return False
        return True

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Make this empty store the ledger `info` with its first receipt, and return who it is."""
        found: list[LedgerInfo] = []

        def apply(connection: apsw.Connection) -> None:
            found.clear()  # a command may be run again, after another in its transaction was refused
            row = connection.execute(QUERIES["read_ledger"]).fetchone()
            if row is not None:
                found.append(LedgerInfo(id=row[0], root_key=row[1]))
                return
            connection.execute(QUERIES["add_ledger"], (info.id, info.root_key))
            add_key(connection, root_key(info.root_key))
            write_entry(connection, first)

        self._write(apply)
        return found[0] if found else info

    @contextmanager
    def view(self) -> Iterator[SqliteView]:
        """Open everything as it is now, for reading."""
        with self._reading() as reader:
            yield SqliteView(reader, self._blobs, self._path)

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one commit, or none."""
        self._require_usable()
        kept: list[ContentId] = []
        try:
            for entry in entries:
                for content in filter(is_blob, entry.contents):
                    self._blobs.write(content.ref.id, content.body)
                    kept.append(content.ref.id)
            self._write(lambda connection: write_entries(connection, entries))
        except BaseException:
            self._drop_unnamed(kept)
            raise
        if erased := [content for entry in entries for content in entry.change.erased]:
            self._forget(erased)
        if self._unclean and self._writer is not None:
            self._unclean = not self._writer.checkpoint()

    def sequence(self) -> int:
        """Give every committed receipt its position: one writer at a time gives it inside the commit."""
        self._require_usable()
        return 0

    def add_seal(self, seal: Seal) -> None:
        """Keep a seal."""

        def apply(connection: apsw.Connection) -> None:
            values = (seal.size, seal.previous, seal.root, seal.note, seal.frontier)
            connection.execute(QUERIES["add_seal"], values)
            if connection.execute(QUERIES["has_seal"], (seal.size,)).fetchone() is None:
                raise StaleHeadError("seals", seal.size)

        self._write(apply)

    def migrations(self) -> tuple[AppliedMigration, ...]:
        """Return the steps of this store's schema, and when each was applied."""
        with self._reading() as reader:
            applied = {row[0]: rows.moment(row[2]) for row in reader.execute(QUERIES["read_applied"])}
        return tuple(AppliedMigration(step.version, step.name, applied.get(step.version)) for step in self._migrations)

    def migrate(self) -> None:
        """Apply the steps that are missing."""
        self._write(lambda connection: _apply_migrations(connection, self._migrations))

    def lost_files(self) -> set[ContentId]:
        """Return files of contents that no row names: left by a crash between the file and its commit."""
        with self.view() as view:
            named = set(view.find_content_ids())
        return self._blobs.names() - named

    def close(self) -> None:
        """Let go of everything."""
        if self._shut:
            return
        self._shut = True
        with self._readers_lock:
            for reader in self._readers:
                reader.close()
            self._readers.clear()
        # The writer last: only a connection that can write folds the log back into the file when it closes.
        if self._writer is not None:
            self._writer.close()

    def _prepare(self) -> None:
        """Make the file a store, or see that it is one of ours that we can read."""
        if self._path.is_dir() or self._path.parent != self.home:
            require_place(self._path)
        if not self._path.exists() or self._path.stat().st_size == 0:
            if self._path.parent == self.home:
                prepare_home(self.home)
            self.migrate()
            return
        with self._reading() as reader:
            ours = reader.pragma("application_id") == APPLICATION_ID
            # A file that nobody has put anything into yet, not even a mark, is free to be made a ledger.
            marked = reader.pragma("application_id") or reader.pragma("user_version")
            if not ours and (marked or reader.execute(QUERIES["has_tables"]).fetchone() is not None):
                raise NotALedgerError(f"{self._path} is another program's database; name another file for the ledger")
            applied = [row[0] for row in reader.execute(QUERIES["read_applied"])] if ours else []
        if pending(self._migrations, applied):
            self.migrate()

    def _write(self, apply: Callable[[apsw.Connection], object]) -> None:
        self._require_usable()
        if self._writer is None:
            with self._writer_lock:
                self._writer = self._writer or Writer(self._path, self.home, self._wait_for)
        self._writer.run(apply)

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        self._require_usable()
        try:
            reader = self._borrow()
            try:
                reader.execute("BEGIN")
                yield reader
            finally:
                if reader.in_transaction:
                    reader.execute("ROLLBACK")
                self._give_back(reader)
        except apsw.Error as error:
            raise translated(error, self._path) from None

    def _borrow(self) -> apsw.Connection:
        with self._readers_lock:
            if self._readers:
                return self._readers.pop()
        try:
            return open_reader(self._path, frozen=self._frozen)
        except (StoreReadOnlyError, StoreUnavailableError, StoreFullError):
            # Read-only media, or full ones: even a reader of a log wants to write beside it, unless told not to.
            if self._frozen:
                raise
            require_folded(self._path)
            self._frozen = True
            return open_reader(self._path, frozen=True)

    def _give_back(self, reader: apsw.Connection) -> None:
        with self._readers_lock:
            if len(self._readers) < _IDLE_READERS and not self._shut:
                self._readers.append(reader)
                return
        reader.close()

    def _drop_unnamed(self, written: Sequence[ContentId]) -> None:
        """Remove the files of contents whose commit failed."""
        if not written:
            return
        with self.view() as view:
            named = {content.id for content in view.find_contents(written)}
        for content in written:
            if content not in named:
                self._blobs.remove(content)

    def _forget(self, erased: Sequence[ContentId]) -> None:
        """Let nothing of erased bodies survive: their files, and the pages that still wait in the write-ahead log."""
        for content in erased:
            self._blobs.remove(content)
        # Somebody who is reading may still need the log; then the next append tries again.
        self._unclean = True

    def _require_usable(self) -> None:
        self._process.require()
        if self._shut:
            raise StoreShutError("this ledger was closed; open it again")


class Writer:
    """The one connection of this process that writes, behind the turnstile that it shares with other processes."""

    def __init__(self, path: Path, home: Path, wait_for: float) -> None:
        require_place(path)
        prepare_home(home)
        self._path = path
        self._turnstile = Turnstile(home)
        # Two processes that make one file at once must not both switch it to write-ahead logging.
        self._turnstile.enter(time.monotonic() + wait_for)
        try:
            # Whatever lies in a ledger is its owner's business, wherever the file is; SQLite's own files follow it.
            # Only if it is new: to close a file drops every lock that SQLite holds on it in this process.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._connection = open_writer(path)
        except OSError as error:
            raise StoreReadOnlyError(f"cannot write {path}: {error.strerror}; the ledger can be read only") from None
        finally:
            self._turnstile.leave()
        self._file = _identity(path)
        self._entered = 0
        self._commits = GroupCommit(self._connection, self, wait_for)

    def run(self, apply: Callable[[apsw.Connection], object]) -> None:
        """Run a command in a transaction and return when it is durable."""
        self._commits.run(apply)

    def enter(self, deadline: float) -> None:
        """Take the right to write, as long as the file is still the one that was opened."""
        self._turnstile.enter(deadline)
        if _identity(self._path) != self._file:
            self._turnstile.leave()
            raise StoreUnavailableError(
                f"{self._path} was replaced or removed while it was open; nothing was recorded: "
                "open the ledger again and verify it with the last seal",
            )
        self._entered += 1
        if self._entered % _GROWN_EVERY == _GROWN_AFTER:
            grow_log(self._path)

    def explain(self) -> str:
        """Say which process has the right to write."""
        return self._turnstile.explain()

    def leave(self) -> None:
        """Give the right to write to the next in line."""
        self._turnstile.leave()

    def checkpoint(self) -> bool:
        """Empty the write-ahead log and return True, unless somebody is still reading from it."""
        try:
            self._commits.run_alone(_empty_log)
        except StoreError:
            return False
        return True

    def close(self) -> None:
        """Finish what is under way and let go."""
        self._commits.shut()
        self._connection.close()
        self._turnstile.close()


def _empty_log(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - pathlib costs twice as much, and this is on the way of every append
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _apply_migrations(connection: apsw.Connection, migrations: Sequence[Migration]) -> None:
    if connection.execute(QUERIES["has_migrations"]).fetchone() is None:
        if connection.execute(QUERIES["has_tables"]).fetchone() is not None:
            raise NotALedgerError("the file is another program's database; name another file for the ledger")
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute(QUERIES["create_migrations"])
    applied = [row[0] for row in connection.execute(QUERIES["read_applied"])]
    for migration in pending(migrations, applied):
        connection.execute(migration.sql)
        values = {
            "version": migration.version,
            "name": migration.name,
            "applied_at": rows.micros(datetime.now(UTC)),
        }
        connection.execute(QUERIES["add_applied"], values)
