"""Opening a store by its URL: the only place that knows which stores there are."""

from pathlib import Path
from typing import Final

from batonpass.errors import InvalidValueError, NoLedgerError, StoreUnavailableError
from batonpass.model.base.checks import shorten
from batonpass.store.home import home_of
from batonpass.store.port import LedgerStore

SQLITE: Final = "sqlite:///"
MEMORY: Final = "memory:"
POSTGRES: Final = ("postgresql", "postgres")


def open_store(url: str, *, create: bool = True) -> LedgerStore:
    """Open `sqlite:///path`, `postgresql://…` or `memory:`.

    Raises `InvalidValueError` for another URL, and a `StoreError` if it cannot be opened.

    Without `create`, nothing is made: neither a SQLite file that does not exist nor tables in an empty database. Raises
    `NoLedgerError` then.
    """
    if url == MEMORY:
        from batonpass.store.memory import MemoryStore  # noqa: PLC0415 - each store is loaded by whoever opens one

        return MemoryStore()
    if url.startswith(SQLITE):
        path = path_of(url)
        if not create and not _exists(path):
            raise NoLedgerError(f"there is no ledger at {path}; record something first, or name another")
        from batonpass.store.sqlite.store import SqliteStore  # noqa: PLC0415 - as above

        return SqliteStore(path)
    if url.partition(":")[0] in POSTGRES:
        return _open_postgres(url, create=create)
    raise _unknown()


def home_by_default(url: str) -> Path | None:
    """Return where a ledger's keys are if nobody says so; None keeps them in memory, with a ledger in memory.

    Raises `InvalidValueError` for a database on a server: a key that died with this process could never be replaced;
    and for what is no ledger at all.
    """
    if url == MEMORY:
        return None
    if url.startswith(SQLITE):
        return home_of(path_of(url))
    if url.partition(":")[0] not in POSTGRES:
        raise _unknown()
    raise InvalidValueError("home", "is needed for this ledger; name a directory for the keys of this relay")


def _unknown() -> InvalidValueError:
    return InvalidValueError("ledger", "is none of sqlite:///PATH, postgresql://… and memory:")


def path_of(url: str) -> Path:
    """Return the file that a SQLite URL names."""
    try:
        path = Path(url.removeprefix(SQLITE)).expanduser().absolute()
    except RuntimeError:
        raise InvalidValueError("ledger", "begins at the home of somebody who has none here") from None
    if not path.name or "\0" in str(path):
        raise InvalidValueError("ledger", f"{shorten(str(path))} cannot be a file; name one for the ledger")
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # whoever opens it will be told why it cannot be seen


def _open_postgres(url: str, *, create: bool) -> LedgerStore:
    try:
        from batonpass.store.postgres.store import PostgresStore  # noqa: PLC0415 - the driver is an extra
    except ImportError:
        raise StoreUnavailableError(
            "this ledger is on PostgreSQL, whose driver is not installed; run `pip install 'batonpass[postgres]'`",
        ) from None
    return PostgresStore(url, create=create)
