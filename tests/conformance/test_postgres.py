"""The PostgreSQL store passes the suite."""

from collections.abc import Iterator

import pytest

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
