"""The SQLite store passes the suite."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw
import pytest

from batonpass.model.ledger.entry import Entry
from batonpass.store.sqlite import store as sqlite_store
from batonpass.store.sqlite.append import write_entries
from batonpass.store.sqlite.append_together import AppendTogether, RefusedTogetherError
from batonpass.store.sqlite.store import SqliteStore
from batonpass.store.sqlite.tail import Tail
from batonpass.testing.conformance import LedgerStoreConformance


class TestSqliteStore(LedgerStoreConformance):
    """The suite, on SQLite."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        """Return an empty store."""
        store = SqliteStore(tmp_path / "ledger.db")
        yield store
        store.close()


class TestSqliteStoreTogether(TestSqliteStore):
    """The suite, where each append goes the way of many at once, and by itself if that one refuses."""

    @pytest.fixture(autouse=True)
    def together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write as a batch does, also what is alone."""

        def write_as_batch(tail: Tail, entries: Sequence[Entry], connection: apsw.Connection) -> None:
            way = AppendTogether(tail)
            if not way.can_join(entries):
                write_entries(tail, entries, connection)
                return
            connection.execute("SAVEPOINT together")
            try:
                way.write(entries, connection)
            except RefusedTogetherError:
                connection.execute("ROLLBACK TO together")
                write_entries(tail, entries, connection)

        monkeypatch.setattr(sqlite_store, "write_entries", write_as_batch)
