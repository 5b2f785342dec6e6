"""SQLite keeps any type in any column: whatever somebody puts there, we find it, and answer in our own words."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

from batonpass.audit.verification import verify
from batonpass.audit.verification.verify import verify_ledger
from batonpass.errors import BatonpassError
from batonpass.ledger.seals import Sealing
from batonpass.store.migrate import find_migrations
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.store.sqlite.store import SqliteStore
from batonpass.testing.builders import Scribe, a_scribe, a_small_tree
from tests.integration.full_ledger import record_everything
from tests.integration.sqlite.tails import settle
from tests.seeds import EVERY_CASE, SEEDS
from tests.unit.cli.desk import record_in

# No receipt says who holds what just now, or how a step of the schema was called: nothing to compare these with.
# What was rolled up can be made anew from receipts at any time, and whoever doubts it counts the receipts.
UNCOMPARED: Final = ("leases.", "schema_migrations.", "ledger.only", "rolled.", "rolled_handoffs.", "rolled_days.")
TYPES: Final = {
    "a text": "CAST(CAST({0} AS BLOB) AS TEXT)",
    "bytes": "CAST({0} AS BLOB)",
    "a word": "'word'",
    "a number": "7",
    "a fraction": "0.5",
    "an infinity": "9e999",
    "nothing": "NULL",
}


def columns() -> list[str]:
    """Return every column of every table that the migrations make."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT, applied_at INTEGER)")
    for step in find_migrations("batonpass.store.sqlite"):
        connection.execute(step.sql)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [f"{table}.{row[1]}" for (table,) in tables for row in connection.execute(f"PRAGMA table_info({table})")]


def tables() -> dict[str, list[str]]:
    """Return the columns of every table."""
    found: dict[str, list[str]] = {}
    for column in columns():
        found.setdefault(column.partition(".")[0], []).append(column)
    return found


def put(path: Path, column: str, expression: str) -> bool:
    """Put something else into one row of a column, whatever its table allows; return whether it is there now."""
    table, _, name = column.partition(".")
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        schema = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).get
        _rewrite(connection, table, schema.replace(" NOT NULL", ""))
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.pragma("ignore_check_constraints", "on")
        key = next(row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[5])
        one = connection.execute(f"SELECT {key} FROM {table} WHERE {name} IS NOT NULL LIMIT 1").get
        before = connection.execute(f"SELECT CAST({name} AS BLOB), typeof({name}) FROM {table}").fetchall()
        try:
            connection.execute(f"UPDATE {table} SET {name} = {expression.format(name)} WHERE {key} = ?", (one,))
        except (apsw.ConstraintError, apsw.MismatchError):
            return False
        finally:
            _rewrite(connection, table, schema)
        seen = connection.execute(f"SELECT CAST({name} AS BLOB), typeof({name}) FROM {table}").fetchall()
    return seen != before


def _rewrite(connection: apsw.Connection, table: str, schema: str) -> None:
    connection.pragma("writable_schema", "on")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (schema, table))
    connection.pragma("writable_schema", "off")


@contextlib.contextmanager
def told_apart(column: str, expression: str) -> Iterator[None]:
    """Let an error that is not ours say what stood where."""
    try:
        yield
    except Exception as error:
        error.add_note(f"with {expression} in {column}")
        raise


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Scribe]:
    """Return a sealed ledger with everything in it that a ledger can hold, and who wrote it."""
    path = tmp_path_factory.mktemp("types") / "ledger.db"
    store = SqliteStore(path)
    scribe = a_scribe(store)
    record_everything(scribe)
    settle(store)
    a_small_tree(scribe, calls=2)
    Sealing(store, scribe.identity).seal()
    store.close()
    return path, scribe


@pytest.fixture
def copies(whole: tuple[Path, Scribe], tmp_path: Path) -> Callable[[str, str], Path | None]:
    """Return who makes a copy of that ledger with another type in one column; None where it cannot be there."""
    path, _ = whole
    beside = tmp_path / "copy.db.batonpass"

    def copy(column: str, expression: str) -> Path | None:
        made = tmp_path / "copy.db"
        # With what lies beside it: what was written to the last copy would be missed in this one.
        shutil.rmtree(beside, ignore_errors=True)
        shutil.copytree(path.with_name("ledger.db.batonpass"), beside)
        for leftover in tmp_path.glob("copy.db-*"):
            leftover.unlink()
        shutil.copyfile(path, made)
        return made if put(made, column, expression) else None

    return copy


def read_all(view: LedgerView) -> None:
    """Read everything that there is, in every way in which it can be asked for as a whole."""
    finders: tuple[Callable[[], Iterator[Any]], ...] = (
        view.find_streams,
        lambda: view.find_receipts(ReceiptQuery()),
        view.find_content_ids,
        view.find_runs,
        view.find_handoffs,
        view.find_overdue,
        view.find_held,
        view.find_statements,
        view.find_touches,
        lambda: view.find_touched_paths("total.py"),
        view.find_cached,
        view.find_charged,
        view.find_held_calls,
        view.find_waiting_calls,
        view.find_decided_calls,
        view.find_leases,
        view.find_keys,
        view.find_seals,
        *(
            lambda prefix=prefix: view.find_ids(prefix, "")
            for prefix in ("run", "handoff", "receipt", "content", "relay", "session")
        ),
    )
    view.info()
    for find in finders:
        with contextlib.suppress(BatonpassError):
            for value in find():
                assert not isinstance(value, bytes | int | float)


@pytest.mark.slow
@pytest.mark.parametrize("table", tables())
def test_another_type_in_a_column_is_found(
    copies: Callable[[str, str], Path | None], table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever type stands in a column that is compared with something, verification finds it and says so."""
    monkeypatch.setattr(verify, "useful_processes", lambda _: 0)
    missed = []
    for column, (name, expression) in product(tables()[table], TYPES.items()):
        copy = copies(column, expression)
        if copy is None:
            continue
        try:
            with contextlib.closing(SqliteStore(copy)) as store:
                verify_ledger(store, check=lambda *_: True)
        except BatonpassError:
            continue
        missed.append((column, name))

    assert [] == [(column, name) for column, name in missed if not column.startswith(UNCOMPARED)]


@pytest.mark.slow
@pytest.mark.parametrize("table", tables())
def test_reading_another_type_raises_nothing_but_our_own_errors(
    copies: Callable[[str, str], Path | None], table: str
) -> None:
    """Who reads rows of another type gets values of the right one, or one of our errors."""
    for column, expression in product(tables()[table], TYPES.values()):
        copy = copies(column, expression)
        if copy is not None:
            with (
                told_apart(column, expression),
                contextlib.suppress(BatonpassError),
                contextlib.closing(SqliteStore(copy)) as store,
                store.view() as view,
            ):
                store.migrations()
                read_all(view)


@pytest.mark.slow
@pytest.mark.parametrize("table", tables())
def test_writing_beside_another_type_raises_nothing_but_our_own_errors(
    whole: tuple[Path, Scribe], copies: Callable[[str, str], Path | None], table: str
) -> None:
    """Who writes into a ledger with such a row either can, or gets one of our errors."""
    _, scribe = whole
    for column, expression in product(tables()[table], TYPES.values()):
        copy = copies(column, expression)
        if copy is not None:
            with (
                told_apart(column, expression),
                contextlib.suppress(BatonpassError),
                contextlib.closing(SqliteStore(copy)) as store,
            ):
                again = a_scribe(store, identity=scribe.identity, root=scribe.root)
                a_small_tree(again, calls=1)
                Sealing(store, scribe.identity).seal()


COMMANDS: Final = (
    ("ledger", "verify"),
    ("ledger", "stats"),
    ("trail",),
    ("why", "last"),
    ("blame", "src/invoice.py:1"),
    ("run", "list"),
    ("handoff", "list"),
    ("receipt", "grep", "."),
    ("key", "list"),
    ("doctor",),
)


def told_by(number: int) -> list[tuple[str, ...]]:
    """Return the commands for a case: a few in turn, so that each meets every column and every type; all with seeds."""
    if SEEDS >= EVERY_CASE:
        return [*COMMANDS]
    return [COMMANDS[(number + step) % len(COMMANDS)] for step in (0, 3, 7)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [
        one
        for one in columns()
        if one.split(".")[0]
        in {"receipts", "contents", "streams", "runs", "handoffs", "keys", "ledger", "schema_migrations"}
    ],
)
def test_commands_meet_another_type_with_a_sentence(tmp_path: Path, column: str) -> None:
    """No command dies of it: none of them says that it is a mistake of ours."""
    desk = record_in(tmp_path)
    kept = tmp_path / "kept.db"
    shutil.copyfile(desk.ledger, kept)
    place = columns().index(column)
    for number, expression in enumerate(TYPES.values()):
        shutil.copyfile(kept, desk.ledger)
        if put(desk.ledger, column, expression):
            for command in told_by(place + number):
                done = desk.run(*command)
                assert "internal error" not in done.output, (expression, command, done.output)


def test_a_payload_that_became_text_was_edited(copies: Callable[[str, str], Path | None]) -> None:
    """The same bytes, said to be text, are not what was recorded."""
    copy = copies("receipts.payload", TYPES["a text"])
    assert copy is not None
    with contextlib.closing(SqliteStore(copy)) as store, pytest.raises(BatonpassError) as found:
        verify_ledger(store)

    assert "verify.edited" == found.value.code
