"""Roll-ups on PostgreSQL, where receipts get their positions a moment later."""

import pytest

from batonpass.drift.rollup import keep_up
from batonpass.store.postgres.store import PostgresStore
from tests.unit.drift.test_rollup import Fleet, computed, kept

pytestmark = pytest.mark.postgres


def test_what_is_kept_is_what_the_receipts_give(postgres_url: str) -> None:
    """In between, afterwards, and once words were erased."""
    fleet = Fleet(PostgresStore(postgres_url))
    told = []
    for act in (
        "done",
        "verified",
        "rolled up",
        "failed",
        "retried",
        "refused",
        "rolled up",
        "nested",
        "erased",
        "refuted",
    ):
        fleet.play(act)
        keep_up(fleet.store)
        told.append(computed(fleet.store) == kept(fleet.store))

    assert [True] * 10 == told
    fleet.store.close()
