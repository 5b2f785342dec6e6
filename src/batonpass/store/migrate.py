"""Schema migrations: numbered SQL files, each applied once and in order.

A ledger with a newer schema than this program knows is refused.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from batonpass.errors import NewerSchemaError, SchemaError
from batonpass.store.sql import files_of

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


class Migration(Struct, frozen=True, order=True):
    """One step of a schema."""

    version: int
    name: str
    sql: str


class AppliedMigration(Struct, frozen=True):
    """A migration of a store, and when it was applied; None if it was not."""

    version: int
    name: str
    applied_at: datetime | None


@cache
def find_migrations(package: str, directory: "Traversable | None" = None) -> tuple[Migration, ...]:
    """Return the migrations of a store in order of version. Raises `SchemaError` if their numbers have a gap."""
    directory = directory or files_of(package).joinpath("migrations")
    found = sorted(
        Migration(int(matched[1]), matched[2], file.read_text(encoding="utf-8"))
        for file in directory.iterdir()
        if (matched := _FILE.fullmatch(file.name))
    )
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise SchemaError(f"the migrations of {package} are not numbered from 0001 without a gap")
    return tuple(found)


def pending(migrations: Sequence[Migration], applied: Iterable[int]) -> tuple[Migration, ...]:
    """Return the migrations that are not applied yet.

    Raises `NewerSchemaError` if the ledger has one that is unknown here.
    """
    done = set(applied)
    newest = max(done, default=0)
    if newest > len(migrations):
        raise NewerSchemaError(
            f"this ledger has schema {newest} and this program knows up to {len(migrations)}; upgrade batonpass",
        )
    return tuple(migration for migration in migrations if migration.version not in done)
