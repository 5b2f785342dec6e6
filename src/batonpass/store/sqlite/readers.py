"""Connections that only read. Each is lent for one transaction and then kept for the next reader."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Generic, TypeVar

import apsw

from batonpass.errors import StoreFullError, StoreReadOnlyError, StoreUnavailableError
from batonpass.store.sqlite.connection import is_folded, open_reader, require_folded, translated

Shown = TypeVar("Shown")

# To open one takes about half a millisecond; 64 threads that hand off had thirty open at once.
_IDLE: Final = 32


class Readers:
    """The reading connections of one process. Safe to use from many threads."""

    def __init__(self, path: Path, *, traceless: bool = False) -> None:
        self.path = path
        self._traceless = traceless  # leave no file behind beside the ledger
        self._idle: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._shut = False
        self._frozen = False

    def lend(self) -> apsw.Connection:
        """Return a connection that nobody else uses. Raises a `StoreError` if the file cannot be opened."""
        try:
            return self._idle.pop()  # list.pop is atomic: each connection goes to one thread
        except IndexError:
            pass
        try:
            # Without a log, all that was committed is in the file, and it can be read without the files that a reader
            # of a log makes. Whoever reads so has to look afterwards whether the file is still the same.
            return open_reader(self.path, frozen=self._frozen or (self._traceless and is_folded(self.path)))
        except (StoreReadOnlyError, StoreUnavailableError, StoreFullError):
            # Read-only or full media: even a reader of a write-ahead log creates files beside it, unless it is told not
            # to.
            if self._frozen:
                raise
            require_folded(self.path)
            self._frozen = True
            return open_reader(self.path, frozen=True)

    def take_back(self, reader: apsw.Connection) -> None:
        """Keep a connection for the next reader, or close it."""
        with self._lock:
            if len(self._idle) < _IDLE and not self._shut:
                self._idle.append(reader)
                return
        reader.close()

    def close(self) -> None:
        """Close the idle connections now, and the lent ones when they come back."""
        with self._lock:
            self._shut = True
            for reader in self._idle:
                reader.close()
            self._idle.clear()


class ReadTransaction(Generic[Shown]):
    """A context manager for one read transaction, on a connection that nobody else uses.

    A class and not a generator, because every operation reads and this costs half as much.
    """

    __slots__ = ("_reader", "_readers", "_show")

    def __init__(self, readers: Readers, show: Callable[[apsw.Connection], Shown]) -> None:
        self._readers = readers
        self._show = show

    def __enter__(self) -> Shown:
        self._reader = reader = self._readers.lend()
        try:
            reader.execute("BEGIN")
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self._show(reader)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        reader = self._reader
        try:
            if reader.in_transaction:
                reader.execute("ROLLBACK")
        except apsw.Error as failed:
            raise translated(failed, self._readers.path) from None
        finally:
            self._readers.take_back(reader)
        if isinstance(error, apsw.Error):
            raise translated(error, self._readers.path) from None
