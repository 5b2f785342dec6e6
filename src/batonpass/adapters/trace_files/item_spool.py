"""Sessions that are mixed in one file, taken apart on disk: the items of each, in order of time."""

import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.store.sql import Queries

_QUERIES: Final = Queries("batonpass.adapters.trace_files", "spool.sql")


class SpooledSession(Struct, frozen=True):
    """One session in a spool."""

    name: str
    items: int
    size: int
    begun: float
    ended: float


class ItemSpool:
    """Items by session, in a file that is gone when nobody needs it any more."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="batonpass-read-")
        self._database = sqlite3.connect(Path(folder) / "items.db", isolation_level=None)
        weakref.finalize(self, _remove, self._database, folder)
        # Nothing in it is needed after a crash.
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        for name in ("create_item", "index_item", "create_named", "index_named"):
            self._database.execute(_QUERIES[name])
        self._database.execute("BEGIN")

    def add(self, session: str, name: str, at: datetime, body: bytes, *, tells: bool = True) -> bool:
        """Keep an item of a session. Return False if there is another one of this name already.

        An item that does not `tell` anything by itself makes no session.
        """
        added = self._database.execute(_QUERIES["add"], (session, name, at.timestamp(), tells, body))
        return (
            added.rowcount > 0 or self._database.execute(_QUERIES["same"], (session, name, body)).fetchone() is not None
        )

    def call(self, session: str, name: str) -> None:
        """Let a session be part of the one with this name."""
        self._database.execute(_QUERIES["call"], (session, name))

    def sessions(self) -> Iterator[SpooledSession]:
        """Yield all sessions that tell something."""
        return (SpooledSession(*row) for row in self._database.execute(_QUERIES["sessions"]))

    def items(self, session: str) -> Iterator[tuple[str, bytes]]:
        """Yield the items of a session in the order of time, each with the name under which it was added."""
        return iter(self._database.execute(_QUERIES["items"], (session,)))


def _remove(database: sqlite3.Connection, folder: str) -> None:
    database.close()
    shutil.rmtree(folder, ignore_errors=True)
