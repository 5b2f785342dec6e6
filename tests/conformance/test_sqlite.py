"""The SQLite store passes the suite."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.conformance import LedgerStoreConformance


class TestSqliteStore(LedgerStoreConformance):
    """The suite, on SQLite."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        """Return an empty store."""
        store = SqliteStore(tmp_path / "ledger.db")
        yield store
        store.close()
