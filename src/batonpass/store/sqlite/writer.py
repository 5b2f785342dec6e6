"""The right to write in this process: one connection, one turnstile, one queue."""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

import apsw

from batonpass.errors import StoreAlteredError, StoreError, StoreReadOnlyError, StoreUnavailableError
from batonpass.store.home import prepare_home
from batonpass.store.sqlite.connection import BUSY_MILLISECONDS, grow_log, open_writer, require_place
from batonpass.store.sqlite.group_commit import GroupCommit
from batonpass.store.sqlite.schema import find_alterations
from batonpass.store.sqlite.tail import QUERIES, Tail
from batonpass.store.sqlite.turnstile import Turnstile

# A process that writes this often is not a hook that is gone in a moment; and an erasure may have emptied the log.
_GROWN_AFTER: Final = 32
_GROWN_EVERY: Final = 4096
_SCHEMA_VERSION: Final = QUERIES["schema_version"]


class Writer:
    """The one connection of this process that writes, behind the turnstile that it shares with other processes."""

    def __init__(self, path: Path, home: Path, wait_for: float, tail: Tail) -> None:
        require_place(path)
        prepare_home(home)
        self._path = str(path)
        self._turnstile = Turnstile(home)
        # Two processes that make one file at once must not both switch it to write-ahead logging.
        self._turnstile.enter(time.monotonic() + wait_for)
        try:
            # Whatever lies in a ledger is its owner's business, wherever the file is; SQLite's own files follow it.
            # Only if it is new: to close a file drops every lock that SQLite holds on it in this process.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            self._connection = open_writer(path)
            status = path.stat()
            self._file = status.st_dev, status.st_ino
        except OSError as error:
            raise StoreReadOnlyError(f"cannot write {path}: {error.strerror}; the ledger can be read only") from None
        finally:
            self._turnstile.leave()
        self._connection.set_rollback_hook(tail.forget)
        self._entered = 0
        self._schema: int | None = None  # the last one that was looked at and is as we made it
        self._tail = tail
        tail.inspect = self._require_schema
        self._commits = GroupCommit(self._connection, self, wait_for, tail)
        # As parts and not as methods of our own: each would be one more call on the way of every append.
        self.run = self._commits.run  # a command in a transaction; it returns when that is durable
        self.explain = self._turnstile.explain  # which process has the right to write
        self.leave = self._turnstile.leave  # give the right to write to the next in line

    def enter(self, deadline: float) -> None:
        """Take the right to write, as long as the file is still the one that was opened."""
        self._turnstile.enter(deadline)
        # Looked at after the lock is taken: nobody of ours replaces the file while another of ours may write to it.
        try:
            status = os.stat(self._path)  # noqa: PTH116 - pathlib takes twice as long, for every append
            same = (status.st_dev, status.st_ino) == self._file
        except OSError:
            same = False
        if not same:
            self.leave()
            raise StoreUnavailableError(
                f"{self._path} was replaced or removed while it was open; nothing was recorded: "
                "open the ledger again and verify it with the last seal",
            )
        self._entered += 1
        if self._entered % _GROWN_EVERY == _GROWN_AFTER:
            grow_log(Path(self._path))

    def _require_schema(self, connection: apsw.Connection) -> None:
        """Refuse to write through a schema that somebody changed. Raises `StoreAlteredError`."""
        # A trigger runs inside our commits, so it is looked for whenever others have committed something. SQLite
        # counts the changes of its schema: as long as that number stands, one look is enough.
        ((version,),) = connection.execute(_SCHEMA_VERSION)
        if version == self._schema:
            return
        for _, problem in find_alterations(connection):
            raise StoreAlteredError(
                f"{self._path}: {problem}; nothing was recorded: run `batonpass ledger verify`, and go on in a new "
                "ledger or in a copy that is whole"
            )
        self._schema = version

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
