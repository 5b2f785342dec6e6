"""Somebody changes the database itself: what we write through it may be lost, so it is found and not written to."""

import contextlib
import shutil
from pathlib import Path
from typing import Final

import apsw
import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import SchemaAlteredError, StoreAlteredError
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import Scribe, a_scribe, a_small_tree

DROPPING: Final = "CREATE TRIGGER quiet AFTER INSERT ON receipts BEGIN DELETE FROM receipts WHERE id = NEW.id; END"
REPLACING: Final = (
    "PRAGMA writable_schema = on;"
    "UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL UNIQUE', 'NOT NULL UNIQUE ON CONFLICT IGNORE')"
    " WHERE name = 'streams';"
    "PRAGMA writable_schema = off"
)
ALTERED: Final = {
    "a trigger that deletes receipts": (DROPPING, "quiet"),
    "a trigger that changes words": (
        "CREATE TRIGGER edit BEFORE INSERT ON contents BEGIN SELECT RAISE(IGNORE); END",
        "edit",
    ),
    "a trigger on a view": (
        "CREATE TRIGGER seen INSTEAD OF UPDATE ON handoffs_seen BEGIN SELECT 1; END",
        "seen",
    ),
    "an index that is gone": ("DROP INDEX runs_by_parent", "runs_by_parent"),
    "an index that keeps nobody from doubling": ("DROP INDEX handoffs_by_key", "handoffs_by_key"),
    "an index of the same name on something else": (
        "DROP INDEX handoffs_by_key; CREATE INDEX handoffs_by_key ON handoffs (scope, key)",
        "handoffs_by_key",
    ),
    "a view that is gone": ("DROP VIEW handoffs_seen", "handoffs_seen"),
    "a view that says something else": (
        "DROP VIEW handoffs_seen; CREATE VIEW handoffs_seen AS SELECT * FROM handoffs WHERE id <> 'x'",
        "handoffs_seen",
    ),
    "a view of somebody else": ("CREATE VIEW mine AS SELECT * FROM receipts", "mine"),
    "a table of somebody else": ("CREATE TABLE mine (a)", "mine"),
    "a table behind a view": (
        "ALTER TABLE touches RENAME TO hidden; CREATE VIEW touches AS SELECT * FROM hidden WHERE path <> 'a'",
        "touches_by_path",
    ),
    "an index of ours that is gone": ("DROP TABLE receipt_places", "receipt_places"),
    "a column more": ("ALTER TABLE contents ADD COLUMN mine TEXT", "contents"),
    "a constraint that drops rows without a word": (REPLACING, "streams"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Scribe]:
    """Return a ledger as our migrations make it, and who wrote it."""
    path = tmp_path_factory.mktemp("schema") / "ledger.db"
    with contextlib.closing(SqliteStore(path)) as store:
        scribe = a_scribe(store)
        a_small_tree(scribe)
    return path, scribe


@pytest.fixture
def copy(whole: tuple[Path, Scribe], tmp_path: Path) -> Path:
    """Return a copy that a test may change."""
    shutil.copyfile(whole[0], tmp_path / "copy.db")
    return tmp_path / "copy.db"


def alter(path: Path, statements: str) -> None:
    """Change the schema from outside."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(statements)


@pytest.mark.parametrize("altered", ALTERED)
def test_a_schema_that_was_changed_is_found(copy: Path, altered: str) -> None:
    """Verification names the part, before it believes anything that it reads."""
    statements, name = ALTERED[altered]
    alter(copy, statements)
    with contextlib.closing(SqliteStore(copy)) as store, pytest.raises(SchemaAlteredError) as found:
        verify_ledger(store)

    assert ("schema", name) == (found.value.stream, found.value.field)


@pytest.mark.parametrize("altered", ALTERED)
def test_nothing_is_written_through_a_schema_that_was_changed(
    whole: tuple[Path, Scribe], copy: Path, altered: str
) -> None:
    """Whoever records is told, and nothing of it is lost without a word."""
    alter(copy, ALTERED[altered][0])
    scribe = whole[1]
    with contextlib.closing(SqliteStore(copy)) as store:
        with pytest.raises(StoreAlteredError, match="nothing was recorded"):
            a_scribe(store, identity=scribe.identity, root=scribe.root).start()
        with contextlib.closing(apsw.Connection(str(copy))) as connection:
            count = connection.execute("SELECT count(*) FROM receipts").get
        with contextlib.closing(apsw.Connection(str(whole[0]))) as connection:
            assert count == connection.execute("SELECT count(*) FROM receipts").get


def test_a_trigger_that_comes_while_we_write_never_runs(whole: tuple[Path, Scribe], copy: Path) -> None:
    """It is looked for before each commit, not only when the ledger was opened."""
    with contextlib.closing(SqliteStore(copy)) as store:
        scribe = a_scribe(store, identity=whole[1].identity, root=whole[1].root)
        lead = scribe.start()
        alter(copy, DROPPING)
        with pytest.raises(StoreAlteredError, match="trigger quiet is not ours"):
            scribe.call(lead)
        alter(copy, "DROP TRIGGER quiet")
        scribe.call(lead)
        verify_ledger(store)


def test_statistics_of_the_planner_are_no_change(copy: Path) -> None:
    """Who has SQLite count rows for its planner has changed nothing."""
    alter(copy, "ANALYZE")
    with contextlib.closing(SqliteStore(copy)) as store:
        verify_ledger(store)
