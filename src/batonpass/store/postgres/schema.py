"""The schema of a ledger in PostgreSQL: created in an empty database, migrated on request, checked for alterations."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Final

from batonpass.errors import NoLedgerError, NotALedgerError, SchemaError
from batonpass.store.migrate import AppliedMigration, Migration, find_migrations, pending
from batonpass.store.postgres.connections import QUERIES, Connection

MIGRATIONS: Final = find_migrations("batonpass.store.postgres")


def prepare(connection: Connection, where: str, *, create: bool = True) -> tuple[Migration, ...]:
    """Make an empty database a store, and return the migrations that an older store lacks.

    Raises `NotALedgerError` if the database is neither empty nor ours, and `NewerSchemaError` if it has a migration
    that we do not know. Without `create`, raises `NoLedgerError` for an empty database and leaves it empty.
    """
    if not _is_made(connection, where):
        if not create:
            raise NoLedgerError(f"there is no ledger at {where}; record something first, or name another")
        migrate(connection, where)
    return pending(MIGRATIONS, _applied(connection))


def migrate(connection: Connection, where: str) -> None:
    """Apply all missing migrations or none. If several processes do this, one applies them and the others wait."""
    with connection.transaction():
        connection.execute(QUERIES["lock_schema"])
        if not _is_made(connection, where):
            connection.execute(QUERIES["create_migrations"])
        for migration in pending(MIGRATIONS, _applied(connection)):
            connection.execute(migration.sql)
            connection.execute(QUERIES["add_applied"], {"version": migration.version, "name": migration.name})


def list_migrations(connection: Connection) -> tuple[AppliedMigration, ...]:
    """Return the migrations, and when each was applied."""
    applied = _applied(connection)
    return tuple(AppliedMigration(step.version, step.name, applied.get(step.version)) for step in MIGRATIONS)


def too_old(missing: Sequence[Migration], where: str) -> SchemaError:
    """Return the error about a store that lacks some migrations."""
    return SchemaError(
        f"{where} has schema {missing[0].version - 1} and this program needs {missing[-1].version}; "
        "run `batonpass ledger migrate`",
    )


def _is_made(connection: Connection, where: str) -> bool:
    has_migrations, has_tables = connection.execute(QUERIES["has_tables"]).fetchone() or (False, False)
    if has_tables and not has_migrations:
        raise NotALedgerError(f"{where} has tables of another program; name another database for the ledger")
    return bool(has_migrations)


def _applied(connection: Connection) -> dict[int, datetime]:
    return {version: at.astimezone(UTC) for version, at in connection.execute(QUERIES["read_applied"])}


EXPECTED: Final = frozenset(files("batonpass.store.postgres").joinpath("parts.txt").read_text("ascii").splitlines())


_TABLES: Final = sorted({part.split(" ")[2] for part in EXPECTED if part.startswith("column of ")})


def read_parts(connection: Connection) -> frozenset[str]:
    """Return the triggers, rules, policies, constraints, indexes, columns and functions of our tables, a line each."""
    return frozenset(row[0] for row in connection.execute(QUERIES["read_parts"], {"tables": _TABLES}))


def find_alterations(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield each part that differs from our migrations: its name, and a sentence about it."""
    found = read_parts(connection)
    for part in sorted(EXPECTED - found):
        yield part.split(" ")[-1], f"{part} is gone, or not as it was made"
    for part in sorted(found - EXPECTED):
        yield part.split(" ")[-1], f"{part} is not ours"
