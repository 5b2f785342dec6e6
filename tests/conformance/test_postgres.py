"""The PostgreSQL store passes the suite."""

from collections.abc import Iterator, Sequence

import pytest

from batonpass.model.ledger.entry import Entry
from batonpass.store.postgres import append
from batonpass.store.postgres.connections import Connection
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing.conformance import LedgerStoreConformance

pytestmark = pytest.mark.postgres


class TestPostgresStore(LedgerStoreConformance):
    """The suite, on PostgreSQL."""

    @pytest.fixture
    def store(self, postgres_url: str) -> Iterator[PostgresStore]:
        """Return an empty store."""
        store = PostgresStore(postgres_url)
        yield store
        store.close()


class TestPostgresStoreTogether(TestPostgresStore):
    """The suite, where each append goes the way of many at once, and by itself if that one gives up."""

    @pytest.fixture(autouse=True)
    def together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Write as a group does, also what is alone."""
        write = append.write

        def write_as_group(connection: Connection, entries: Sequence[Entry]) -> None:
            if not (len(entries) == 1 and append.write_together(connection, entries)):
                write(connection, entries)

        monkeypatch.setattr(append, "write", write_as_group)
