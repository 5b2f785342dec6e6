"""The writer of one process: its one writing connection, its queue of commands, and the turnstile before the file."""

import contextlib
import os
import time
from pathlib import Path
from typing import Final

import apsw

from batonpass.errors import StoreAlteredError, StoreError, StoreReadOnlyError, StoreUnavailableError
from batonpass.store.home import prepare_home
from batonpass.store.sqlite.append_together import AppendTogether
from batonpass.store.sqlite.connection import BUSY_MILLISECONDS, grow_log, open_writer, require_place
from batonpass.store.sqlite.group_commit import GroupCommit
from batonpass.store.sqlite.schema import find_alterations
from batonpass.store.sqlite.tail import QUERIES, Tail
from batonpass.store.sqlite.turnstile import Turnstile

# A process that writes so often is not a short-lived hook. Repeated, because an erasure may have emptied the log.
_GROWN_AFTER: Final = 32
_GROWN_EVERY: Final = 4096
_SCHEMA_VERSION: Final = QUERIES["schema_version"]


class Writer:
    """The one connection of this process that writes. Other processes are kept out by the turnstile."""

    def __init__(self, path: Path, home: Path, wait_for: float, tail: Tail) -> None:
        require_place(path)
        prepare_home(home)
        self._path = str(path)
        self._turnstile = Turnstile(home)
        # Two processes that create the file at once must not both switch it to write-ahead logging.
        self._turnstile.enter(time.monotonic() + wait_for)
        try:
            # A ledger is readable by its owner only, wherever it lies; SQLite's own files get the same mode. Only a new
            # file is opened here: closing any descriptor of a file drops all locks that SQLite holds on it in this
            # process.
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
        self._schema: int | None = None  # the last schema version that was checked and found unaltered
        self._tail = tail
        tail.inspect = self._require_schema
        self._commits = GroupCommit(self._connection, self, wait_for, tail, AppendTogether(tail))
        # Attributes instead of methods: a method would be one more call in every append.
        self.run = self._commits.run  # runs a command in a transaction and returns when that is durable
        self.explain = self._turnstile.explain  # names the process that has the right to write
        self.leave = self._turnstile.leave  # gives the right to write to the next in line

    def enter(self, deadline: float) -> None:
        """Take the right to write. Raises `StoreBusyError`, or `StoreUnavailableError` if the file was replaced."""
        self._turnstile.enter(deadline)
        # Checked while we hold the lock: no process of ours replaces the file while another may be writing to it.
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
        """Refuse to write through an altered schema. Raises `StoreAlteredError`."""
        # A trigger would run inside our commits, so this is checked whenever others have committed. SQLite counts
        # changes of the schema: while that number stays the same, one check is enough.
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
        """Empty the write-ahead log and return True; return False if somebody still reads from it."""
        try:
            self._commits.run_alone(_empty_log)
        except StoreError:
            return False
        return True

    def close(self) -> None:
        """Finish the commands that have begun, then close connection and locks."""
        self._commits.shut()
        self._connection.close()
        self._turnstile.close()


def _empty_log(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.set_busy_timeout(BUSY_MILLISECONDS)
