"""A store on PostgreSQL and a relay that records in it."""

from collections.abc import Iterator

import pytest

from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe, a_scribe


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    """Return a store."""
    store = PostgresStore(postgres_url)
    yield store
    store.close()


@pytest.fixture
def scribe(store: PostgresStore) -> Scribe:
    """Return a relay that records in the store."""
    return a_scribe(store)
