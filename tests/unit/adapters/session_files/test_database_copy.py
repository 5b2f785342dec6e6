"""Other programs' databases are read while they are used, and nothing beside them changes."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from batonpass.adapters.session_files.database_copy import DatabaseCopy

NAMES = "SELECT name FROM session ORDER BY name"


def beside(path: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in path.parent.iterdir()}


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_what_was_committed_is_read_while_somebody_writes(tmp_path: Path, mode: str) -> None:
    """Also what is only in the log beside the file; what is not committed is not there."""
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(f"PRAGMA journal_mode = {mode}")
        writer.execute("CREATE TABLE session (name)")
        writer.execute("INSERT INTO session VALUES ('first')")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO session VALUES ('under way')")
        before = beside(path)
        copy = DatabaseCopy(path)
        first = list(copy.ask(NAMES))
        after = beside(path)
        writer.execute("COMMIT")  # nobody holds a lock
        second = list(copy.ask(NAMES))

    assert ([("first",)], [("first",), ("under way",)]) == (first, second)
    assert before == after


def test_a_database_at_rest_gets_no_files_beside_it(tmp_path: Path) -> None:
    """Not even one in the mode that needs them."""
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("CREATE TABLE session (name)")
    before = beside(path)

    assert [] == list(DatabaseCopy(path).ask(NAMES))
    assert before == beside(path)


def test_what_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    """Whoever reads it goes on with the rest."""
    path = tmp_path / "sessions.db"
    path.write_bytes(b"nonsense" * 1000)

    with pytest.raises(sqlite3.DatabaseError):
        list(DatabaseCopy(path).ask(NAMES))
