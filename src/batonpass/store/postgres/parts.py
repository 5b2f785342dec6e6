"""What of a database can change or hide what we write there, and how our migrations leave it.

Names of constraints and indexes, and digests of the bodies of functions: what PostgreSQL says about the rest of them
differs from version to version. A test compares the list with a new database.
"""

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from batonpass.store.postgres.connections import QUERIES, Connection

EXPECTED: Final = frozenset(files("batonpass.store.postgres").joinpath("parts.txt").read_text("ascii").splitlines())


_TABLES: Final = sorted({part.split(" ")[2] for part in EXPECTED if part.startswith("column of ")})


def read_parts(connection: Connection) -> frozenset[str]:
    """Return the triggers, rules, policies, constraints, indexes, columns and functions of our tables, a line each."""
    return frozenset(row[0] for row in connection.execute(QUERIES["read_parts"], {"tables": _TABLES}))


def find_alterations(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield what is not as our migrations made it: the name of each part, and what is wrong with it."""
    found = read_parts(connection)
    for part in sorted(EXPECTED - found):
        yield part.split(" ")[-1], f"{part} is gone, or not as it was made"
    for part in sorted(found - EXPECTED):
        yield part.split(" ")[-1], f"{part} is not ours"
