"""Opens a store by its URL. This is the only module that knows which stores exist."""

from pathlib import Path
from typing import Final

from batonpass.errors import InvalidValueError, NoLedgerError, StoreUnavailableError
from batonpass.model.base.checks import shorten
from batonpass.store.home import home_of
from batonpass.store.port import LedgerStore

SQLITE: Final = "sqlite:///"
MEMORY: Final = "memory:"
POSTGRES: Final = ("postgresql", "postgres")


def open_store(url: str, *, create: bool = True, reads_only: bool = False) -> LedgerStore:
    """Open the store at `sqlite:///PATH`, `postgresql://…` or `memory:`.

    Without `create`, nothing is created: neither a SQLite file that does not exist nor tables in an empty database.
    With `reads_only`, nothing is changed in a directory either: no schema is brought up to date, and no file is left
    beside a SQLite file that nobody is writing.

    Raises `InvalidValueError` for any other URL, `NoLedgerError` if there is no ledger and `create` is not set, and
    another `StoreError` if the store cannot be opened.
    """
    if url == MEMORY:
        from batonpass.store.memory import MemoryStore  # noqa: PLC0415 - a store is imported only when one is opened

        return MemoryStore()
    if url.startswith(SQLITE):
        path = path_of(url)
        if (not create or reads_only) and not _exists(path):
            raise NoLedgerError(f"there is no ledger at {path}; record something first, or name another")
        from batonpass.store.sqlite.store import SqliteStore  # noqa: PLC0415 - as above

        return SqliteStore(path, reads_only=reads_only)
    if url.partition(":")[0] in POSTGRES:
        return _open_postgres(url, create=create and not reads_only)
    raise _unknown()


def home_by_default(url: str) -> Path | None:
    """Return the default directory for a ledger's keys; None for a ledger in memory, whose keys are in memory too.

    Raises `InvalidValueError` for a database on a server, because a key that died with this process could never be
    replaced, and for a URL that names no ledger.
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
    """Return the file that a SQLite URL names. Raises `InvalidValueError` if it cannot be a file."""
    try:
        path = Path(url.removeprefix(SQLITE)).expanduser().absolute()
    except RuntimeError:
        raise InvalidValueError(
            "ledger", "begins with the home directory of a user who has none on this machine"
        ) from None
    if not path.name or "\0" in str(path):
        raise InvalidValueError("ledger", f"{shorten(str(path))} cannot be a file; name one for the ledger")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        problem = f"{shorten(str(path))} is not UTF-8, as SQLite needs it; name a file elsewhere for the ledger"
        raise InvalidValueError("ledger", problem) from None
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # opening it will report why it cannot be seen


def _open_postgres(url: str, *, create: bool) -> LedgerStore:
    try:
        from batonpass.store.postgres.store import PostgresStore  # noqa: PLC0415 - the driver is an extra
    except ImportError:
        raise StoreUnavailableError(
            "this ledger is on PostgreSQL, whose driver is not installed; run in your clone of Batonpass: "
            "pip install '.[postgres]'",
        ) from None
    return PostgresStore(url, create=create)
