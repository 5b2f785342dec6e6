"""The lists of allowed values in SQL equal the enums."""

import re
from typing import Final, TypeAlias

import pytest

from tests.house.tree import PACKAGE, files, module

Checks: TypeAlias = dict[tuple[str, str], set[str]]

# A new list in a migration needs its line here; a line here needs its list in every dialect.
ENUMS: Final = {
    ("charged", "unit"): "batonpass.model.grants.charge.Unit",
    ("contents", "place"): "batonpass.model.ledger.content.Place",
    ("handoffs", "carrier"): "batonpass.model.base.lifecycle.Carrier",
    ("handoffs", "state"): "batonpass.model.base.lifecycle.State",
    ("keys", "role"): "batonpass.model.ledger.key.KeyRole",
    ("keys", "status"): "batonpass.model.ledger.key.KeyStatus",
    ("remarks", "said"): "batonpass.model.ledger.remark.RemarkKind",
    ("runs", "state"): "batonpass.model.ledger.run.RunState",
}

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_TABLE = re.compile(r"\s*(?:CREATE|ALTER)\s+TABLE\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:ONLY\s+)?\"?(\w+)", re.IGNORECASE)
_LIST = re.compile(r"\"?(\w+)\"?\s+IN\s*\(((?:\s*'[^']*'\s*,?)+)\)", re.IGNORECASE)
_VALUE = re.compile(r"'([^']*)'")
# The text of a table, as a migration of SQLite rewrites it: each value is compared by itself.
_REWRITTEN = re.compile(r"\s*UPDATE\s+sqlite_schema\s+SET\s+sql\s*=\s*'((?:[^']|'')*)'", re.IGNORECASE)
_COMPARED = re.compile(r"\b(\w+) = '([^']*)'")


def checks_in(sql: str) -> Checks:
    """Return the values that each checked column of each table may have; the last definition counts."""
    found: Checks = {}
    for statement in _COMMENT.sub("", sql).split(";"):
        rewritten = _REWRITTEN.match(statement)
        said = statement if rewritten is None else rewritten[1].replace("''", "'")
        if table := _TABLE.match(said):
            checked: Checks = {
                (table[1], column): set(_VALUE.findall(values)) for column, values in _LIST.findall(said)
            }
            for column, value in _COMPARED.findall(said):
                checked.setdefault((table[1], column), set()).add(value)
            found |= checked
    return found


def enums() -> Checks:
    """Return the values of the enums, by the column that stores them."""
    found: Checks = {}
    for column, place in ENUMS.items():
        home, _, name = place.rpartition(".")
        found[column] = {member.value for member in getattr(module(home), name)}
    return found


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_check_lists_equal_the_enums(dialect: str) -> None:
    """A database takes exactly the states, kinds and roles that the code knows."""
    migrations = list(files(PACKAGE / "store" / dialect / "migrations", ".sql"))

    assert enums() == checks_in("\n".join(path.read_text(encoding="utf-8") for path in migrations))


def test_check_lists_are_read_from_sql() -> None:
    """A list is found behind a column or at the end of a table that is made, changed or rewritten, not in a comment."""
    sql = """
        CREATE TABLE IF NOT EXISTS a (
            b TEXT NOT NULL CHECK (b IN ('x', 'y')),  -- once: b IN ('z')
            c TEXT,
            CHECK (c IS NULL OR c IN ('p'))
        ) STRICT;
        ALTER TABLE a ADD COLUMN d TEXT CHECK (d IN (
            'm',
            'n'
        ));
        CREATE INDEX e ON a (b) WHERE b IN ('x');
        CREATE TABLE f (g TEXT CHECK (g IN ('k', 'l')));
        UPDATE sqlite_schema SET sql = 'CREATE TABLE f (g TEXT CHECK (g = ''k'' OR g = ''q''))' WHERE name = 'f';
    """

    assert {
        ("a", "b"): {"x", "y"},
        ("a", "c"): {"p"},
        ("a", "d"): {"m", "n"},
        ("f", "g"): {"k", "q"},
    } == checks_in(sql)
