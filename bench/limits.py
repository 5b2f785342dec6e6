"""What the machine can do at best: the same bytes, made durable with nothing around them."""

import os
import threading
from pathlib import Path
from typing import Final

import apsw
from nacl.signing import SigningKey

from bench.measure import Act

_CHECKPOINT_PAGES: Final = 2_000
_SIGNATURES: Final = 2  # of the relay and of the run


class RawFile:
    """A file that only grows: one write and one fsync for each append."""

    def __init__(self, path: Path, size: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._data = os.urandom(size)

    def append(self) -> None:
        """Append, and return when it is durable."""
        os.write(self._file, self._data)
        os.fsync(self._file)

    def append_thrice(self) -> None:
        """Append three times, each durable before the next: the floor of anything with three commits."""
        for _ in range(3):
            self.append()

    def share(self, _: int) -> Act:
        """Return what one thread of many does: the kernel may join their fsyncs."""
        return self.append


class BareSqlite:
    """One table of one column, with pages as large as a ledger's; each insert is a transaction of its own."""

    def __init__(self, path: Path, size: int, ledger: Path) -> None:
        self._lock = threading.Lock()
        self._data = os.urandom(size)
        self._connection = apsw.Connection(str(path))
        self._page_bytes = int(apsw.Connection(str(ledger), flags=apsw.SQLITE_OPEN_READONLY).pragma("page_size"))
        self._connection.pragma("page_size", self._page_bytes)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.pragma("wal_autocheckpoint", _CHECKPOINT_PAGES)
        self._connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self._use_up_log()

    def insert(self) -> None:
        """Insert one row, and return when it is durable."""
        self._connection.execute("INSERT INTO bare (body) VALUES (?)", (self._data,))

    def share(self, _: int) -> Act:
        """Return what one thread of many does: insert when it is its turn."""
        return self._insert_in_turn

    def _insert_in_turn(self) -> None:
        with self._lock:
            self.insert()

    def _use_up_log(self) -> None:
        # A log that still grows costs more to make durable than one that is written over again, and the second is the
        # rule: a ledger is in it after some hundred appends.
        with self._connection:
            for _ in range(_CHECKPOINT_PAGES + 100):
                self._connection.execute("INSERT INTO bare (body) VALUES (zeroblob(?))", (self._page_bytes,))


class SignedFile:
    """The physical limit: one thread makes as many signatures as receipts have, and one append+fsync for a batch."""

    def __init__(self, path: Path, size: int, batch: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._keys = tuple(SigningKey.generate() for _ in range(_SIGNATURES))
        self._data = os.urandom(size)
        self._batch = batch

    def append_batch(self) -> None:
        """Sign and append a batch, and return when it is durable."""
        parts = []
        for _ in range(self._batch):
            parts.append(self._data)
            parts += [key.sign(self._data).signature for key in self._keys]
        os.write(self._file, b"".join(parts))
        os.fsync(self._file)

    def share(self, _: int) -> Act:
        """Return what its one thread does."""
        return self.append_batch
