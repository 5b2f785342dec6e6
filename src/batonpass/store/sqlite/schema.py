"""Compares the schema of a ledger with the one that the migrations make.

A trigger runs inside our own commits, and a changed conflict clause can drop rows silently. So a changed schema can
falsify the record as much as changed rows can.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, TypeAlias

import apsw

from batonpass.store.migrate import find_migrations
from batonpass.store.sqlite.tail import QUERIES

Part: TypeAlias = tuple[str, str]  # (table, index, view or trigger; its name)

# Statistics of SQLite's planner, which it creates on request.
_PLANNER: Final = "sqlite_stat"
_TRIGGER: Final = "trigger"
_MIGRATIONS: Final = find_migrations("batonpass.store.sqlite")


def find_alterations(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Yield each part of the schema that differs from our migrations: its name, and a sentence about it."""
    if connection.execute(QUERIES["has_migrations"]).fetchone() is None:
        return  # an empty file, or another program's database; both are detected elsewhere
    expected, found = _made(), _read(connection)
    applied = {row[0] for row in connection.execute(QUERIES["read_applied"])}
    if applied != {migration.version for migration in _MIGRATIONS}:
        # An older ledger, whose pending migrations would still add and drop parts. No migration ever made a trigger, so
        # at least triggers can be checked.
        expected, found = {}, {part: made for part, made in found.items() if part[0] == _TRIGGER}
    for part in sorted(expected.keys() | found.keys()):
        kind, name = part
        if part not in found:
            yield name, f"the {kind} {name} is gone"
        elif part not in expected:
            yield name, f"the {kind} {name} is not ours"
        elif expected[part] != found[part]:
            yield name, f"the {kind} {name} is not as it was made"


@cache
def _made() -> dict[Part, tuple[str, str | None]]:
    """Return the schema that our migrations make in an empty database."""
    connection = apsw.Connection(":memory:")
    try:
        connection.execute(QUERIES["create_migrations"])
        for migration in _MIGRATIONS:
            connection.execute(migration.sql)
        return _read(connection)
    finally:
        connection.close()


def _read(connection: apsw.Connection) -> dict[Part, tuple[str, str | None]]:
    return {
        (str(kind), str(name)): (str(table), None if sql is None else " ".join(str(sql).split()))
        for kind, name, table, sql in connection.execute(QUERIES["read_schema"])
        if not str(name).startswith(_PLANNER)
    }
