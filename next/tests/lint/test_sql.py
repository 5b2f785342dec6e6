"""What SQL says a second time is compared with the code: states, columns, and the tables of both dialects."""

import re
from pathlib import Path

import pytest

from batonpass.model.lifecycle import RunState, State
from batonpass.store.admission import TABLES
from batonpass.store.postgres.encoding import COLUMNS

_STORE = Path(__file__).parents[2] / "src" / "batonpass" / "store"
_SCHEMAS = {
    dialect: (_STORE / dialect / "schema.sql").read_text(encoding="utf-8") for dialect in ("sqlite", "postgres")
}


def columns_of(schema: str, thing: str) -> list[tuple[str, str]]:
    """Return the columns of a table or type, each with its first word of a type."""
    found = re.search(rf"CREATE (?:TABLE|TYPE) {thing}(?: AS)? \((.*?)\n\)", schema, re.DOTALL)
    assert found is not None
    return re.findall(r"^    ([a-z_]+) ([a-zA-Z]+)", found[1], re.MULTILINE)


def test_columns_of_a_change_are_its_fields() -> None:
    """The type of the array that is sent has the columns that are encoded, in their order."""
    assert list(COLUMNS) == [name for name, _ in columns_of(_SCHEMAS["postgres"], "change")]


@pytest.mark.parametrize("dialect", _SCHEMAS)
@pytest.mark.parametrize(("table", "states"), [("streams", RunState), ("handoffs", State)])
def test_states_of_a_check_are_those_of_the_code(
    dialect: str, table: str, states: type[State] | type[RunState]
) -> None:
    """A row can have each state that the code knows, and no other."""
    found = re.search(rf"CREATE TABLE {table} .*?CHECK \(state IN \((.*?)\)\)", _SCHEMAS[dialect], re.DOTALL)
    assert found is not None

    assert [f"'{state}'" for state in states] == found[1].split(", ")


@pytest.mark.parametrize("table", TABLES)
def test_derived_tables_have_the_same_columns_in_both_dialects(table: str) -> None:
    """Names, order and kinds: a row is the same wherever it is."""
    same = {"TEXT": "text", "INTEGER": "bigint", "BLOB": "bytea"}

    sqlite, postgres = (columns_of(_SCHEMAS[dialect], table) for dialect in ("sqlite", "postgres"))

    assert [(name, same[kind]) for name, kind in sqlite] == postgres


@pytest.mark.parametrize("table", TABLES)
def test_text_that_is_sorted_compares_by_byte(table: str) -> None:
    """Every text of a derived table: the order of rows is the same on every server, and in both stores."""
    body = _SCHEMAS["postgres"].split(f"CREATE TABLE {table} (")[1].split("\n)")[0]

    assert [] == [line for line in body.splitlines() if " text" in line and 'COLLATE "C"' not in line]
