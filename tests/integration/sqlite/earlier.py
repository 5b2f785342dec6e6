"""Ledgers as earlier versions made them: the same rows, in a file that has only the first steps of the schema."""

import contextlib
from pathlib import Path
from typing import Final

import apsw

from batonpass.store.migrate import find_migrations
from batonpass.store.sqlite.connection import APPLICATION_ID
from batonpass.store.sqlite.tail import QUERIES

_TABLES: Final = "SELECT name FROM {}.sqlite_master WHERE type = 'table'"


def make_earlier(path: Path, version: int) -> None:
    """Make a closed ledger one of an earlier version: by its own steps, with what its tables have room for."""
    kept = path.with_name(f"later-{path.name}")
    path.rename(kept)
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute(QUERIES["create_migrations"])
        for step in find_migrations("batonpass.store.sqlite"):
            if step.version <= version:
                connection.execute(step.sql)
                values = {"version": step.version, "name": step.name, "applied_at": 0}
                connection.execute(QUERIES["add_applied"], values)
        connection.execute("ATTACH ? AS later", (str(kept),))
        later = {name for (name,) in connection.execute(_TABLES.format("later"))}
        for (table,) in connection.execute(_TABLES.format("main")).fetchall():
            if table in later and table != "schema_migrations":
                _copy(connection, str(table))
        connection.execute("DETACH later")
    kept.unlink()


def _copy(connection: apsw.Connection, table: str) -> None:
    now, then = (
        [row[1] for row in connection.execute(f"PRAGMA {schema}.table_info({table})")] for schema in ("later", "main")
    )
    columns = ", ".join(column for column in then if column in now)
    # Some steps leave a row of their own, which the ledger's row replaces. Remarks of a later kind have no room yet.
    otherwise = "IGNORE" if table == "remarks" else "REPLACE"
    connection.execute(f"INSERT OR {otherwise} INTO main.{table} ({columns}) SELECT {columns} FROM later.{table}")
