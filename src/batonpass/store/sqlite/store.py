"""The SQLite store: `append` returns when its entries are durable, and threads and processes take turns to write."""

import os
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import apsw

from batonpass.errors import (
    NoLedgerError,
    NotALedgerError,
    StaleHeadError,
    StoreReadOnlyError,
    StoreShutError,
    StoreUnavailableError,
)
from batonpass.model.base.ids import AgentId, ContentId, HandoffId, require_agent
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.lease import Lease
from batonpass.model.ledger.projection import root_key
from batonpass.model.ledger.rollup import RolledDay, RolledHandoff, RollupMark
from batonpass.model.ledger.seal import Seal
from batonpass.store import rows
from batonpass.store.home import home_of, prepare_home
from batonpass.store.migrate import AppliedMigration, Migration, find_migrations, pending
from batonpass.store.port import LedgerInfo, Wake
from batonpass.store.process import OwnProcess
from batonpass.store.sqlite import leases
from batonpass.store.sqlite.append import LARGEST_ROW_BODY, add_key, write_entries
from batonpass.store.sqlite.blobs import Blobs
from batonpass.store.sqlite.connection import (
    APPLICATION_ID,
    require_place,
)
from batonpass.store.sqlite.readers import Readers, ReadTransaction
from batonpass.store.sqlite.tail import QUERIES, Tail
from batonpass.store.sqlite.view import SqliteView
from batonpass.store.sqlite.writer import Writer

Answer = TypeVar("Answer")

_WAIT_SECONDS: Final = 30.0


class SqliteStore:
    """Keeps a ledger in one file, and bodies that are too large for a row in files beside it."""

    confirm_every: float | None = None

    def __init__(self, path: Path, *, wait_for: float = _WAIT_SECONDS, reads_only: bool = False) -> None:
        self.url = f"sqlite:///{path}"
        self.home = home_of(path)
        self._path = path
        self._process = OwnProcess()
        self._pid = self._process.pid
        self._migrations = find_migrations("batonpass.store.sqlite")
        self._blobs = Blobs(self.home / "blobs")
        self._wait_for = wait_for
        self._readers = Readers(path, traceless=reads_only)
        self._reads_only = reads_only
        self._tail = Tail()
        self._writer: Writer | None = None
        self._writer_lock = threading.Lock()
        self._shut = False
        self._unclean = False
        self._claimed = False  # whether the last claim found something
        try:
            self._prepare()
        except OSError as error:
            raise StoreUnavailableError(f"{path} cannot be opened: {error.strerror}; name another file") from None

    def __repr__(self) -> str:
        return f"<SqliteStore at {self.url}>"

    def founded(self) -> bool:
        """Return whether somebody has founded this ledger."""
        with self.view() as view:
            try:
                view.info()
            except NotALedgerError:
                return False
        return True

    def found(self, info: LedgerInfo, first: Entry) -> LedgerInfo:
        """Make this empty store the ledger `info` with its first receipt, and return its identity."""

        def apply(connection: apsw.Connection) -> LedgerInfo:
            row = connection.execute(QUERIES["read_ledger"]).fetchone()
            if row is not None:
                return rows.info(row)
            connection.execute(QUERIES["add_ledger"], (info.id, info.root_key))
            add_key(connection, root_key(info.root_key))
            write_entries(self._tail, [first], connection)
            return info

        return self._answer(apply)

    def view(self, about: HandoffId | None = None) -> ReadTransaction[SqliteView]:  # noqa: ARG002 - nothing to fetch in advance
        """Open a view of the ledger as it is now."""
        self._require_usable()
        return ReadTransaction(self._readers, self._show)

    def _show(self, reader: apsw.Connection) -> SqliteView:
        return SqliteView(reader, self._blobs, self._path)

    def append(self, entries: Sequence[Entry]) -> None:
        """Write all entries in one commit, or none."""
        kept: list[ContentId] = []
        try:
            for entry in entries:
                for content in entry.contents:
                    if len(content.body) > LARGEST_ROW_BODY:
                        self._blobs.write(content.ref.id, content.body)
                        kept.append(content.ref.id)
            self._write(partial(write_entries, self._tail, entries), entries=entries)
        except BaseException:
            self._drop_unnamed(kept)
            raise
        for entry in entries:
            if entry.change.erased:
                self._forget(entry.change.erased)
        if self._unclean and self._writer is not None:
            self._unclean = not self._writer.checkpoint()

    def claim(self, *, holder: str, lease_for: timedelta, agents: Collection[AgentId] | None = None) -> Lease | None:
        """Claim the oldest ready handoff to one of these agents."""
        # If the last claim found something, there mostly is more: looking first would only cost another transaction.
        looks, self._claimed = not self._claimed, False
        lease = self._take(lambda connection: leases.find_free(connection, agents), holder, lease_for, looks=looks)
        self._claimed = lease is not None
        return lease

    def renew(self, lease: Lease, lease_for: timedelta) -> Lease:
        """Extend a lease, counted from now. Raises `LeaseLostError`."""
        return self._answer(lambda connection: leases.renew(connection, lease, lease_for), lasting=False)

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        self._write(lambda connection: leases.release(connection, lease), lasting=False)

    def seize(self, *, holder: str, lease_for: timedelta) -> Lease | None:
        """Take over one lease whose time has run out."""
        return self._take(leases.find_lapsed, holder, lease_for)

    def postpone(self, handoff: HandoffId, lasts: timedelta) -> None:
        """Let nobody claim a handoff for a while."""
        self._write(lambda connection: leases.postpone(connection, handoff, lasts))

    def await_work(self, agents: Collection[AgentId], *, at_most: timedelta, stop: threading.Event) -> Wake:  # noqa: ARG002 - no notifications
        """Return at once: this store has no notifications, so the caller looks again after a while."""
        return Wake.UNTOLD

    def sequence(self) -> int:
        """Return 0: every receipt gets its position in its own commit, because there is one writer at a time."""
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

    def roll(
        self, after: RollupMark, upto: RollupMark, handoffs: Sequence[RolledHandoff], days: Sequence[RolledDay]
    ) -> bool:
        """Keep roll-ups and move their mark, unless another process moved it first."""

        def apply(connection: apsw.Connection) -> bool:
            moved = (upto.version, upto.position, after.version, after.position)
            if connection.execute(QUERIES["move_rolled"], moved).fetchone() is None:
                return False
            if upto.version != after.version:
                connection.execute(QUERIES["drop_rolled_handoffs"])
                connection.execute(QUERIES["drop_rolled_days"])
            connection.executemany(QUERIES["put_rolled_handoff"], map(rows.rolled_row, handoffs))
            connection.executemany(QUERIES["put_rolled_day"], ((*day.id, day.body) for day in days if day.body))
            connection.executemany(QUERIES["drop_rolled_day"], (day.id for day in days if not day.body))
            return True

        # They can be made again: nobody waits for the disk.
        return self._answer(apply, lasting=False)

    def migrations(self) -> tuple[AppliedMigration, ...]:
        """Return the migrations of this store's schema, and when each was applied."""
        with self._reading() as reader:
            applied = dict(map(rows.applied, reader.execute(QUERIES["read_applied"])))
        return tuple(AppliedMigration(step.version, step.name, applied.get(step.version)) for step in self._migrations)

    def migrate(self) -> None:
        """Apply the migrations that are missing."""
        self._write(lambda connection: _apply_migrations(connection, self._migrations))

    def lost_files(self) -> set[ContentId]:
        """Return the contents that have a file but no row: a crash came between the file and its commit."""
        with self.view() as view:
            named = set(view.find_content_ids())
        return self._blobs.names() - named

    def close(self) -> None:
        """Close all connections. Closing twice is harmless."""
        if self._shut:
            return
        self._shut = True
        self._readers.close()
        # The writer last: only a connection that can write folds the log back into the file when it closes.
        if self._writer is not None:
            self._writer.close()

    def _prepare(self) -> None:
        """Create the store in a new file, or check that an existing file is a ledger that we can read."""
        if self._path.is_dir() or self._path.parent != self.home:
            require_place(self._path)
        if not self._path.exists() or self._path.stat().st_size == 0:
            if self._reads_only:
                raise NoLedgerError(f"there is no ledger at {self._path}")
            if self._path.parent == self.home:
                prepare_home(self.home)
            self.migrate()
            return
        with self._reading() as reader:
            ours = reader.pragma("application_id") == APPLICATION_ID
            # A file with no tables and no mark of any program may become a ledger.
            marked = reader.pragma("application_id") or reader.pragma("user_version")
            if not ours and (marked or reader.execute(QUERIES["has_tables"]).fetchone() is not None):
                raise NotALedgerError(f"{self._path} is another program's database; name another file for the ledger")
            applied = [row[0] for row in reader.execute(QUERIES["read_applied"])] if ours else []
        if pending(self._migrations, applied):
            if self._reads_only:
                raise StoreUnavailableError(f"{self._path} is of an earlier version; run `batonpass ledger migrate`")
            self.migrate()

    def _write(
        self, apply: Callable[[apsw.Connection], object], *, lasting: bool = True, entries: Sequence[Entry] = ()
    ) -> None:
        if self._shut or os.getpid() != self._pid:
            self._require_usable()
        if self._reads_only:
            raise StoreReadOnlyError(f"{self._path} was opened to be read only")
        if self._writer is None:
            with self._writer_lock:
                self._writer = self._writer or Writer(self._path, self.home, self._wait_for, self._tail)
        self._writer.run(apply, lasting=lasting, entries=entries)

    def _answer(self, apply: Callable[[apsw.Connection], Answer], *, lasting: bool = True) -> Answer:
        """Run a command and return its last answer: it runs again if another command in its batch was refused."""
        answers: list[Answer] = []
        self._write(lambda connection: answers.append(apply(connection)), lasting=lasting)
        return answers[-1]

    def _take(
        self,
        find: Callable[[apsw.Connection], HandoffId | None],
        holder: str,
        lease_for: timedelta,
        *,
        looks: bool = True,
    ) -> Lease | None:
        require_agent("holder", holder)
        # Workers ask often and mostly in vain. A look on a reading connection keeps nobody from writing.
        if looks:
            with self._reading() as reader:
                if find(reader) is None:
                    return None
        # Leases do not wait for the disk. A power failure may undo one, as if its time were over; then an acceptance
        # under it is refused. Whatever is written later and waits is behind it in the same log, so it never stands
        # without the lease that it relied on.
        return self._answer(lambda connection: leases.take(connection, find, holder, lease_for), lasting=False)

    def _reading(self) -> ReadTransaction[apsw.Connection]:
        self._require_usable()
        return ReadTransaction(self._readers, _itself)

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
        """Remove the files of erased bodies, and arrange that their pages leave the write-ahead log."""
        for content in erased:
            self._blobs.remove(content)
        # A reader may still need the log; then the next append tries again to empty it.
        self._unclean = True

    def _require_usable(self) -> None:
        self._process.require()
        if self._shut:
            raise StoreShutError("this ledger was closed; open it again")


def _itself(reader: apsw.Connection) -> apsw.Connection:
    return reader


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
