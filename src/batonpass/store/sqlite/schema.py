"""The schema as the migrations make it, and what somebody has made of it since.

A trigger runs inside our own commits, and a constraint with another conflict clause drops rows without a word: what is
written depends on the schema as much as on us.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, TypeAlias

import apsw

from batonpass.store.migrate import find_migrations
from batonpass.store.sqlite.tail import QUERIES

Part: TypeAlias = tuple[str, str]  # table, index, view or trigger; and its name

# What SQLite keeps for its own planner, if somebody asks it to.
_PLANNER: Final = "sqlite_stat"
_TRIGGER: Final = "trigger"
_MIGRATIONS: Final = find_migrations("batonpass.store.sqlite")


def find_alterations(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Yield each part of the schema that is not as our migrations made it: its name, and what is wrong with it."""
    if connection.execute(QUERIES["has_migrations"]).fetchone() is None:
        return  # nothing was made here yet, or it is another program's; both are found elsewhere
    expected, found = _made(), _read(connection)
    applied = {row[0] for row in connection.execute(QUERIES["read_applied"])}
    if applied != {migration.version for migration in _MIGRATIONS}:
        # One from earlier, before its missing steps are applied: it has parts that are made later, and others that are
        # gone by then. We never made a trigger, so there is none at any time.
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
    """Return what our steps make of an empty file."""
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
