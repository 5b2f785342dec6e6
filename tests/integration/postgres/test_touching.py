"""Paths in PostgreSQL: looked up and never searched for, and gone when they are erased."""

import psycopg
import pytest

from batonpass.errors import DerivedStateError
from batonpass.store.postgres.connections import QUERIES
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing.builders import ANA, Scribe
from batonpass.testing.conformance.touched_paths import changed
from tests.integration.postgres.support import database_of
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres


@pytest.mark.usefixtures("store")
def test_a_path_is_one_lookup(postgres: Server, postgres_url: str) -> None:
    """However many changes there are, those of one path are read from the index, from its latest end."""
    postgres.execute(
        "INSERT INTO touches SELECT 'content_' || n, n, 'src/' || n % 1000 FROM generate_series(1, 50000) AS n",
        database=database_of(postgres_url),
    )
    postgres.execute("ANALYZE touches", database=database_of(postgres_url))
    with psycopg.connect(postgres_url) as connection:
        plan = connection.execute(f"EXPLAIN {QUERIES['find_touches']}", {"path": "src/7"}).fetchall()

    assert any("touches_by_path" in line for (line,) in plan), plan
    assert not any("Seq Scan on touches" in line for (line,) in plan), plan


def test_nothing_of_an_erased_path_waits_for_the_next_vacuum(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """Erasing has the row removed at once, and its entries in both indexes."""
    (secret,) = changed(scribe, scribe.start(), "src/ana-miller-1970.py")
    scribe.erasure.erase([secret.content], by=ANA, reason="asked to")

    assert [(1,)] == postgres.execute(
        "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'touches'",
        database=database_of(postgres_url),
    )
    with store.view() as view:
        assert [] == list(view.find_touches())


def test_a_path_without_its_receipt_is_named(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """A row that belongs to nothing is not passed on as if it did."""
    (touched,) = changed(scribe, scribe.start(), "src/total.py")
    postgres.execute("UPDATE touches SET receipt = 0", database=database_of(postgres_url))

    with pytest.raises(DerivedStateError, match=touched.content), store.view() as view:
        list(view.find_touches("src/total.py"))
