"""Opens SQLite files with the settings that we rely on, and translates SQLite's errors."""

import contextlib
import os
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

import apsw

from batonpass.errors import (
    NotALedgerError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)

# A connection or a cursor: both run statements.
Statements: TypeAlias = apsw.Connection | apsw.Cursor

# "BATN": distinguishes a ledger from any other SQLite file.
APPLICATION_ID: Final = 0x4241544E
BUSY_MILLISECONDS: Final = 5_000
_PAGE_BYTES: Final = 4_096
_CHECKPOINT_PAGES: Final = 2_000
# The log is folded back into the file at this size, and begun again; with some room for one last large commit.
LOG_BYTES: Final = _CHECKPOINT_PAGES * (_PAGE_BYTES + 24) + (1 << 20)
_CHUNK: Final = bytes(1 << 16)  # small enough to stay in a processor's cache while it is written repeatedly
# Enough for each number of rows in which many appends are written.
_STATEMENTS: Final = 256
_READ_WRITE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_READ_ONLY: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


def open_writer(path: Path) -> apsw.Connection:
    """Open a file for writing, such that a commit is durable when it returns. Raises a `StoreError`."""
    try:
        connection = apsw.Connection(str(path), flags=_READ_WRITE, statementcachesize=_STATEMENTS)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.pragma("page_size", _PAGE_BYTES)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full")
        connection.pragma("wal_autocheckpoint", _CHECKPOINT_PAGES)
        connection.pragma("cache_size", -65_536)
        connection.pragma("secure_delete", "on")  # an erased body must not survive in a free page
    except apsw.Error as error:
        raise translated(error, path) from None
    return connection


def grow_log(path: Path) -> None:
    """Give the write-ahead log its full size in advance, if it is smaller.

    To overwrite and sync existing blocks of a file takes half the time of making the file longer, at every commit.
    SQLite knows by salt and checksum where the valid part of the log ends, so it ignores the zeros behind it. The
    caller must have the right to write. A disk without room for this is not an error yet.
    """
    with contextlib.suppress(OSError), open(f"{path}-wal", "r+b") as log:  # noqa: PTH123 - a name beside the path
        size = log.seek(0, os.SEEK_END)
        if size < LOG_BYTES:
            while size < LOG_BYTES:
                size += log.write(_CHUNK[: LOG_BYTES - size])
            log.flush()
            os.fsync(log.fileno())


def open_reader(path: Path, *, frozen: bool = False) -> apsw.Connection:
    """Open a file for reading. `frozen` is for a place where nothing can be written, not even beside the file.

    Raises a `StoreError`.
    """
    address = f"file:{quote(str(path))}?mode=ro" + ("&immutable=1" if frozen else "")
    try:
        connection = apsw.Connection(address, flags=_READ_ONLY)
        connection.set_busy_timeout(BUSY_MILLISECONDS)
        connection.pragma("query_only", "on")
        connection.pragma("cache_size", -16_384)
        connection.pragma("schema_version")  # a first read: an unreadable file is refused here and not later
    except apsw.Error as error:
        raise translated(error, path) from None
    return connection


def translated(error: apsw.Error, path: Path | None = None) -> StoreError:
    """Return the `StoreError` for an error of SQLite, with a sentence for a person."""
    where = f" {path}" if path is not None else ""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusyError(f"another program has locked the ledger{where}; close it and try again")
        case apsw.FullError() | apsw.IOError() if isinstance(error, apsw.FullError) or _is_full(path):
            return StoreFullError(
                f"there is no room left to write the ledger{where}; nothing was recorded: free some disk"
            )
        case apsw.ReadOnlyError():
            return StoreReadOnlyError(f"the ledger{where} cannot be written; make the file and its directory writable")
        case apsw.NotADBError() | apsw.CorruptError():
            return NotALedgerError(
                f"{path or 'the file'} is not a ledger, or is damaged: {error}; restore it or choose another"
            )
        case apsw.CantOpenError():
            return StoreUnavailableError(_why_not_opened(path))
        case _:
            return StoreUnavailableError(f"the ledger{where} cannot be used: {error}; nothing was recorded")


def _is_full(path: Path | None) -> bool:
    """Return whether the disk is full: SQLite reports a log that it cannot create as an I/O error."""
    try:
        if path is None:
            return False
        disk = os.statvfs(path.parent)
        return disk.f_bavail * disk.f_frsize < _PAGE_BYTES
    except OSError:
        return False


def is_folded(path: Path) -> bool:
    """Return whether the file has all that was committed, and nothing is in a log beside it."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size == 0
    except FileNotFoundError:
        return True


def require_folded(path: Path) -> None:
    """Refuse to read a file without its log if the log may hold more receipts. Raises `StoreReadOnlyError`."""
    if not is_folded(path):
        raise StoreReadOnlyError(
            f"{path} has a log beside it that must be folded in first, and nothing can be written there; "
            "copy both to a place that can be written and read them there",
        )


def require_place(path: Path) -> None:
    """Refuse a path where no file can be made, before anything is created beside it. Raises `StoreUnavailableError`."""
    if path.is_dir() or not path.parent.is_dir():
        raise StoreUnavailableError(_why_not_opened(path))


def _why_not_opened(path: Path | None) -> str:
    if path is None:
        return "the ledger's file cannot be opened any more"
    if path.is_dir():
        return f"{path} is a directory; name a file for the ledger"
    if not path.parent.is_dir():
        return f"there is no directory {path.parent}; make it, or name another file for the ledger"
    return f"{path} cannot be opened; look at its permissions and those of {path.parent}"
