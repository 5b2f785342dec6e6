"""How SQLite goes about what must stay quick in a large ledger."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from batonpass.store.sqlite.store import SqliteStore
from batonpass.store.sqlite.writing import QUERIES


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Return the file of a ledger that nobody has written to, so that there are no statistics to go by."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    yield path
    store.close()


@pytest.mark.parametrize("given", ["stream", "root"])
def test_receipts_of_a_stream_are_found_without_the_others(path: Path, given: str) -> None:
    """However many receipts there are, only those of the wanted streams are looked at."""
    wanted = {"first": 1, "last": 1, "since": "", "kind": None, "agent": None, "stream": None, "root": None, given: "x"}
    connection = apsw.Connection(str(path))
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES['find_receipts_of_streams']}", wanted)]

    assert ["SEARCH receipts USING INDEX sqlite_autoindex_receipts_2 (stream=?)"] == [
        step for step in plan if " receipts" in step
    ]
    assert [] == [step for step in plan if step in {"SCAN handoffs", "SCAN streams"}]


def test_attempts_are_found_without_those_at_other_handoffs(path: Path) -> None:
    """However many children a run has, and in their order without sorting them."""
    connection = apsw.Connection(str(path))
    wanted = {"parent": "x", "handoff": "y"}
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES['find_attempts']}", wanted)]

    assert ["SEARCH runs USING INDEX runs_by_parent (parent=? AND handoff=?)"] == plan
