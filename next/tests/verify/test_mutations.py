"""A ledger that was changed in any way is found, or the change is on the list of what is not claimed.

`docs/spec/verification.md` has that list. Two things that are drawn here are on it: receipts of different streams that
change places, and the number of the one row of `ledger`.
`BATONPASS_MUTATIONS=500` runs as many seeds; one that failed is run alone with `-k`.
"""

import os
from collections.abc import Callable
from random import Random
from typing import Any

import apsw
import pytest
from nacl.signing import SigningKey

from batonpass import Relay
from batonpass.errors import BatonpassError, StoreError, VerificationError
from tests.verify.conftest import RichLedger

MUTATIONS = int(os.environ.get("BATONPASS_MUTATIONS", "100"))
TABLES = {
    "receipts": "position",
    "ledger": "one",
    "streams": "id",
    "handoffs": "id",
    "open_calls": "id",
    "requests": "request, part",
    "revoked": "account",
    "touches": "target, stream, seq",
}
Row = tuple[Any, ...]


class Mutator:
    """Draws a change of a ledger, and makes it with SQL alone."""

    def __init__(self, connection: apsw.Connection, random: Random) -> None:
        self.connection = connection
        self.random = random
        self.made = ""

    def dump(self) -> list[Row]:
        """Return every value of every row with its type, and the schema."""
        found: list[Row] = list(self.connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name"))
        for table, key in TABLES.items():
            values = ", ".join(f"typeof({column}), hex({column})" for column in self._columns(table))
            found += [(table, *row) for row in self.connection.execute(f"SELECT {values} FROM {table} ORDER BY {key}")]
        return found

    def claimed(self) -> list[Row]:
        """Return the same without what is not claimed: the order between streams, and the number of a single row."""
        found: list[Row] = list(self.connection.execute("SELECT position, typeof(position) FROM receipts ORDER BY 1"))
        for table, key in TABLES.items():
            columns = [column for column in self._columns(table) if column not in {"position", "one"}]
            values = ", ".join(f"typeof({column}), hex({column})" for column in columns)
            order = "stream, position" if table == "receipts" else key
            found += [
                (table, *row) for row in self.connection.execute(f"SELECT {values} FROM {table} ORDER BY {order}")
            ]
        return found

    def _columns(self, table: str) -> list[str]:
        return [str(row[1]) for row in self.connection.execute(f"PRAGMA table_info({table})")]

    def mutate(self) -> None:
        """Make one change, whatever the schema says against it: an attacker can lift it, and put it back."""
        kinds = (
            *[self._flip_a_bit] * 6,
            *[self._change_a_type] * 3,
            *[self._delete_a_row] * 2,
            *[self._repeat_a_row] * 2,
            *[self._swap_a_column] * 2,
            *[self._swap_two_rows] * 2,
            self._sign_with_another_key,
            self._move_a_receipt,
            self._cut_a_stream,
            self._cut_the_end,
            self._cut_the_salt,
        )
        before = self.dump()
        while self.dump() == before:
            kind: Callable[[], str] = self.random.choice(kinds)
            self.made = f"{kind.__name__.lstrip('_')}: "
            try:
                self.made += kind()
            except (apsw.ConstraintError, apsw.MismatchError):  # what the schema refuses changes nothing
                continue

    def _flip_a_bit(self) -> str:
        table, column, where, value = self._a_value()
        if isinstance(value, int):
            self._put(table, column, where, value ^ 1 << self.random.randrange(40))
        elif value:
            data = bytearray(value if isinstance(value, bytes) else value.encode())
            data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
            self._put(table, column, where, bytes(data), "CAST(? AS TEXT)" if isinstance(value, str) else "?")
        return f"{table}.{column} {where}"

    def _change_a_type(self) -> str:
        table, column, where, value = self._a_value()
        others = [None, 0, 1.5, "", b"", "text", b"bytes"]
        if isinstance(value, str):
            others += [value.encode()] * 3
        elif isinstance(value, bytes):
            others += [value.decode("latin-1")] * 3
        elif isinstance(value, int):
            others += [float(value) + 0.5, str(value), str(value).encode()]
        other = self.random.choice(others)
        self._lift_schema(lambda: self._put(table, column, where, other))
        return f"{table}.{column} {where} {other!r}"

    def _delete_a_row(self) -> str:
        table, where = self._a_row()
        self._execute(f"DELETE FROM {table} WHERE {where}")
        return f"{table} {where}"

    def _repeat_a_row(self) -> str:
        table, where = self._a_row()
        columns = self._columns(table)
        key = self.random.choice([*TABLES[table].split(", "), *(["stream"] if table == "receipts" else [])])
        values: dict[str, str] = dict(zip(columns, columns, strict=True))
        values[key] = f"{key} || 'x'" if key not in {"position", "one", "seq"} else f"{key} + 1000"
        if table == "receipts" and key == "position":
            values["seq"] = "seq + 1000"
        elif table == "receipts":
            values["position"] = "position + 1000"
        self._lift_schema(
            lambda: self._execute(f"INSERT INTO {table} SELECT {', '.join(values.values())} FROM {table} WHERE {where}")
        )
        return f"{table} {where} {key}"

    def _swap_a_column(self) -> str:
        table, column, where, value = self._a_value()
        _, _, other_where, other = self._a_value(table, column)
        self._put(table, column, where, other)
        self._put(table, column, other_where, value)
        return f"{table}.{column} {where} and {other_where}"

    def _swap_two_rows(self) -> str:
        first, second = self._a_row("receipts")[1], self._a_row("receipts")[1]
        columns = ", ".join(self._columns("receipts")[1:])
        (one,), (two,) = (
            list(self.connection.execute(f"SELECT {columns} FROM receipts WHERE {w}")) for w in (first, second)
        )
        self._execute(f"UPDATE receipts SET seq = -seq WHERE {first} OR {second}")
        marks = ", ".join("?" * len(one))
        self._execute(f"UPDATE receipts SET ({columns}) = ({marks}) WHERE {first}", two)
        self._execute(f"UPDATE receipts SET ({columns}) = ({marks}) WHERE {second}", one)
        return f"{first} and {second}"

    def _sign_with_another_key(self) -> str:
        column = self.random.choice(["signature", "cosignature"])
        where = self._a_row("receipts")[1]
        ((payload,),) = self.connection.execute(f"SELECT payload FROM receipts WHERE {where}")
        message = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)
        self._put("receipts", column, where, SigningKey(self.random.randbytes(32)).sign(message).signature)
        return f"{column} {where}"

    def _move_a_receipt(self) -> str:
        where = self._a_row("receipts")[1]
        position = self.random.choice([0, -1, 2**40])
        self._execute(f"UPDATE receipts SET position = ? WHERE {where}", (position,))
        return f"{where} to {position}"

    def _cut_a_stream(self) -> str:
        _, where = self._a_row("receipts")
        stream = f"stream = (SELECT stream FROM receipts WHERE {where})"
        self._execute(f"DELETE FROM receipts WHERE {stream} AND seq >= (SELECT seq FROM receipts WHERE {where})")
        return where

    def _cut_the_end(self) -> str:
        _, where = self._a_row("receipts")
        self._execute(f"DELETE FROM receipts WHERE position >= (SELECT position FROM receipts WHERE {where})")
        return where

    def _cut_the_salt(self) -> str:
        _, where = self._a_row("receipts")
        ((contents,),) = self.connection.execute(f"SELECT contents FROM receipts WHERE {where}")
        if contents is not None:
            short = contents.replace(b"\xc4\x10", b"\xc4\x0f", 1)
            self._put("receipts", "contents", where, short)
        return where

    def _a_row(self, table: str | None = None) -> tuple[str, str]:
        """Return a table, and what finds one of its rows."""
        table = table or self.random.choice([*TABLES, "receipts", "streams", "handoffs"])
        keys = TABLES[table].split(", ")
        row = self.random.choice(list(self.connection.execute(f"SELECT {TABLES[table]} FROM {table}")))
        return table, " AND ".join(f"{key} = {value!r}" for key, value in zip(keys, row, strict=True))

    def _a_value(self, table: str | None = None, column: str | None = None) -> tuple[str, str, str, Any]:
        """Return a table, a column, what finds a row, and its value there."""
        table, where = self._a_row(table)
        column = column or self.random.choice(self._columns(table))
        ((value,),) = self.connection.execute(f"SELECT {column} FROM {table} WHERE {where}")
        return table, column, where, value

    def _put(self, table: str, column: str, where: str, value: object, expression: str = "?") -> None:
        self._execute(f"UPDATE {table} SET {column} = {expression} WHERE {where}", (value,))

    def _execute(self, sql: str, values: Row = ()) -> None:
        self.connection.execute(sql, values)

    def _lift_schema(self, act: Callable[[], None]) -> None:
        """Do something with tables that take any type and any word, and put the schema back."""
        read = "SELECT rowid, sql FROM sqlite_schema"
        schema = list(self.connection.execute(read))
        self.connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        self._execute("PRAGMA writable_schema = 1")
        self._execute("PRAGMA ignore_check_constraints = 1")
        loose = "replace(replace(replace(replace(sql, ' NOT NULL', ''), ' TEXT', ''), ' INTEGER,', ','), ' BLOB', '')"
        self._execute(f"UPDATE sqlite_schema SET sql = replace(replace({loose}, 'STRICT, ', ''), ' STRICT', '')")
        self._reload()
        try:
            act()
        finally:
            for rowid, sql in schema:
                self._execute("UPDATE sqlite_schema SET sql = ? WHERE rowid = ?", (sql, rowid))
            self._reload()

    def _reload(self) -> None:
        ((version,),) = self.connection.execute("PRAGMA schema_version")
        self._execute(f"PRAGMA schema_version = {version + 1}")


def read_everything(relay: Relay) -> None:
    """Look at all that there is, as people and programs do. What is not as it should be is a sentence, no traceback."""
    for info in relay.runs():
        for look in (relay.run, relay.resume):
            try:
                look(info.id)
            except BatonpassError:
                continue
        if info.handoff is None:
            continue
        try:
            handoff = relay.handoff(info.handoff)
            handoff.info(), handoff.baton(), handoff.result()
        except BatonpassError:
            continue


@pytest.mark.parity("rows-follow-from-receipts-alone", "columns-have-strict-types", "receipts-are-signed-and-chained")
@pytest.mark.parametrize("seed", range(MUTATIONS))
def test_a_changed_ledger_is_found(ledger: RichLedger, seed: int) -> None:
    """Whatever is changed in any row of any table, the ledger is refused or its first fault is named."""
    connection = apsw.Connection(str(ledger.path))
    mutator = Mutator(connection, Random(seed))
    before = mutator.claimed()
    mutator.mutate()
    is_claimed = before != mutator.claimed()
    connection.close()
    found = ""
    try:
        with ledger.open() as relay:
            try:
                relay.verify()
            except (VerificationError, StoreError) as fault:
                found = fault.code
            read_everything(relay)
    except BatonpassError as refusal:
        found = found or refusal.code

    assert found or not is_claimed, mutator.made
