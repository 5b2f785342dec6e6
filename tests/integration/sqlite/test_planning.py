"""How SQLite goes about what must stay quick in a large ledger."""

import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from batonpass.store.sqlite.store import SqliteStore
from batonpass.store.sqlite.tail import QUERIES


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Return the file of a ledger that nobody has written to, so that there are no statistics to go by."""
    path = tmp_path / "ledger.db"
    store = SqliteStore(path)
    yield path
    store.close()


@pytest.mark.parametrize("given", ["stream", "root", "agent"])
def test_receipts_of_a_stream_are_found_without_the_others(path: Path, given: str) -> None:
    """However many receipts there are, only those of the wanted streams are looked at."""
    wanted = {
        "first": 1,
        "last": 1,
        "since": "",
        "kind": None,
        "agent": None,
        "stream": None,
        "root": None,
        "but": "",
        given: "x",
    }
    connection = apsw.Connection(str(path))
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES['find_receipts_of_streams']}", wanted)]

    # By the index those that are settled, by position those that came later, and each of both by its position.
    assert ["SEARCH receipt_places USING PRIMARY KEY (stream=?)"] == [step for step in plan if "receipt_places" in step]
    assert {"rowid>?", "rowid=?"} == {
        step.removeprefix("SEARCH receipts USING INTEGER PRIMARY KEY (").removesuffix(")")
        for step in plan
        if " receipts" in step
    }
    assert [] == [step for step in plan if step in {"SCAN handoffs", "SCAN streams", "SCAN runs"}]


def test_requests_without_an_outcome_are_looked_for_in_some_runs_alone(path: Path) -> None:
    """By the latest runs, their streams and the places of their last receipts; never through all of anything."""
    connection = apsw.Connection(str(path))
    wanted = {"runs": 1, "of_each": 1, "most": 1}
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES['find_open_requests']}", wanted)]

    places = "SEARCH receipt_places USING PRIMARY KEY (stream=? AND seq>? AND seq<?)"
    assert [places] == [step for step in plan if "receipt_places" in step]
    assert {"rowid>?", "rowid=?"} == {
        step.removeprefix("SEARCH receipts USING INTEGER PRIMARY KEY (").removesuffix(")")
        for step in plan
        if " receipts" in step
    }
    # Runs are gone through in the order of their ids, and only as many as are wanted.
    assert [] == [step for step in plan if step in {"SCAN receipts", "SCAN streams"}]


LISTS = {
    "find_runs_in_state": "runs_by_state (state=? AND id<?)",
    "find_runs_of_agent": "runs_by_agent (agent=? AND id<?)",
    "find_roots": "runs_roots (id<?)",
    "find_children": "runs_by_parent (parent=?)",
    "find_series": "runs_by_series (series=? AND id<?)",
    "find_session": "runs_by_session (session=? AND id<?)",
    "find_session_roots": "runs_roots_of_session (session=? AND id<?)",
    "find_handoffs_in_state": "handoffs_by_state (state=? AND id<?)",
    "find_ready": "handoffs_by_state (state=? AND id<?)",
    "find_handoffs_of_agent": "handoffs_by_agent (agent=? AND id<?)",
    "find_handoffs_of_run": "handoffs_by_parent (parent=? AND id<?)",
    "find_held": "handoffs_by_state (state=?)",
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_read_by_its_index_and_the_tail_by_its_ids(path: Path, name: str) -> None:
    """What is settled comes by index; of the rest only what is greater is looked at, and nothing is scanned."""
    connection = apsw.Connection(str(path))
    wanted = dict.fromkeys(re.findall(r":(\w+)", QUERIES[name]), "x")
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES[name]}", wanted)]
    table = LISTS[name].split("_")[0]
    steps = [step.replace("COVERING INDEX", "INDEX") for step in plan if f" {table} " in f"{step} "]

    assert f"SEARCH {table} USING INDEX {LISTS[name]}" == steps[0]
    assert steps[1].startswith(f"SEARCH {table} USING PRIMARY KEY (id>?")
    assert 2 == len(steps)


def test_attempts_are_found_without_those_at_other_handoffs(path: Path) -> None:
    """However many children a run has, and in their order without sorting them."""
    connection = apsw.Connection(str(path))
    wanted = {"parent": "x", "handoff": "y"}
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {QUERIES['find_attempts']}", wanted)]

    # Only the few that are not settled are sorted.
    assert [
        "SEARCH runs USING INDEX runs_by_parent (parent=? AND handoff=?)",
        "SEARCH runs USING PRIMARY KEY (id>?)",
    ] == [step for step in plan if " runs " in step]
    assert ["USE TEMP B-TREE FOR ORDER BY"] == plan[plan.index("RIGHT") :][-1:]
    assert 1 == sum("TEMP B-TREE" in step for step in plan)


@pytest.mark.parametrize(
    "name",
    [
        "add_content",
        "add_handoff",
        "add_receipt",
        "add_run",
        "end_run",
        "move_handoff_of_caller",
        "move_stream",
        "open_stream",
    ],
)
def test_what_each_act_writes_needs_no_table_of_its_own(path: Path, name: str) -> None:
    """A list of values in a CHECK would be made a table, with a cache of pages, whenever a row is written."""
    connection = apsw.Connection(str(path))
    query = QUERIES[name]
    numbered = [int(number) for number in re.findall(r"\?(\d+)", query)]
    given = (None,) * (max(numbered) if numbered else query.count("?"))
    steps = [row[1] for row in connection.execute(f"EXPLAIN {query}", given)]

    assert "OpenWrite" in steps
    assert "OpenEphemeral" not in steps


@pytest.mark.parametrize(("table", "column"), [("contents", "place"), ("handoffs", "state"), ("runs", "state")])
def test_a_value_that_nobody_knows_is_refused(path: Path, table: str, column: str) -> None:
    """Also by the tables whose checks were rewritten."""
    connection = apsw.Connection(str(path))
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = [1 if name in {"number", "settled"} else "caller" if name == "carrier" else "other" for name in columns]
    marks = ", ".join("?" * len(columns))

    with pytest.raises(apsw.ConstraintError, match=f"CHECK constraint failed: {column} = "):
        connection.execute(f"INSERT INTO {table} VALUES ({marks})", values)
