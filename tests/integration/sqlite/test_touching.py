"""Paths in SQLite: looked up and never searched for, written only where there are any, gone when they are erased."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from batonpass.store.sqlite.store import SqliteStore
from batonpass.store.sqlite.tail import QUERIES
from batonpass.testing.builders import ANA, Scribe, a_scribe, a_small_tree
from batonpass.testing.conformance.touched_paths import changed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    opened.close()


@pytest.fixture
def scribe(store: SqliteStore) -> Scribe:
    return a_scribe(store)


def plan_of(path: Path, name: str) -> list[str]:
    """Return how SQLite goes about a statement."""
    connection = apsw.Connection(str(path))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", ("src/total.py",))]


@pytest.mark.usefixtures("store")
def test_a_path_is_one_lookup(path: Path) -> None:
    """However many changes there are, those of one path are read from the index in their order; nothing is sorted."""
    assert [
        "SEARCH touches USING COVERING INDEX touches_by_path (path=?)",
        "SEARCH receipts USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
    ] == plan_of(path, "find_touches")


@pytest.mark.usefixtures("store")
def test_endings_are_looked_for_in_the_index(path: Path) -> None:
    """Paths that end so are found without reading anything but paths, and come in order by themselves."""
    assert ["SCAN touches USING COVERING INDEX touches_by_path"] == plan_of(path, "find_touched_paths")


def test_an_entry_without_changes_costs_no_statement(store: SqliteStore, scribe: Scribe) -> None:
    """Whoever records no changes pays nothing for those who do."""
    seen: list[str] = []

    def listen(_: apsw.Cursor, statement: str, __: object) -> bool:
        seen.append(statement)
        return True

    assert store._writer is not None
    store._writer._connection.exec_trace = listen
    a_small_tree(scribe)
    before = [statement for statement in seen if "touches" in statement]
    changed(scribe, scribe.start(), "src/total.py")

    assert [] == before
    assert [QUERIES["add_touch"]] == [statement for statement in seen if "touches" in statement]


def test_nothing_of_an_erased_path_is_left(path: Path, store: SqliteStore, scribe: Scribe) -> None:
    """A path is zeroed where it stood, in the table and in its index, and so is the log that brought it there."""
    lead = scribe.start()
    changed(scribe, lead, *(f"src/{number}.py" for number in range(100)))
    (secret,) = changed(scribe, lead, "src/ana-miller-1970.py")
    scribe.erasure.erase([secret.content], by=ANA, reason="asked to")

    assert [] == [file.name for file in path.parent.rglob("*") if file.is_file() and b"ana-miller" in file.read_bytes()]
    with store.view() as view:
        assert 100 == len(list(view.find_touches()))
