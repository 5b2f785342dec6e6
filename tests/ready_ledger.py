"""A new SQLite ledger as a copy of one that is ready: to make its tables anew takes eight times as long."""

import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from batonpass.store.sqlite.store import SqliteStore

# Their tests are about how a ledger is made, and about what happens while it is.
MADE_ANEW: Final = ("conformance", "integration")

_TESTS: Final = Path(__file__).parent
_migrate: Final = SqliteStore.migrate


def copy_ledgers(path: Path) -> None:
    """Let the tests of a file copy new ledgers, unless they are about making them."""
    is_copied = path.relative_to(_TESTS).parts[0] not in MADE_ANEW
    SqliteStore.migrate = _copy_and_migrate if is_copied else _migrate  # type: ignore[assignment,method-assign]


def _copy_and_migrate(store: SqliteStore) -> None:
    path = Path(store.url.removeprefix("sqlite:///"))
    if path.parent.is_dir() and not path.exists():
        _place(path)
    _migrate(store)  # opens the file as ever, and finds every step applied


def _place(path: Path) -> None:
    # Under another name first: another process sees the whole file or none, and is never overwritten.
    descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=".ready-")
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(_ready())
    with suppress(FileExistsError):
        os.link(written, path)
    Path(written).unlink()


@cache
def _ready() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "ledger.db"
        path.touch()  # so that it is not copied from itself
        SqliteStore(path).close()
        return path.read_bytes()
