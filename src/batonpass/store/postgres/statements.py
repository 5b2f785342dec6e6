"""Statements as the server gets them: each connection prepares one once, and several go in one round trip.

The driver's cursors look at every value, every time, and take longer for that than the server for a short statement.
Here the values go as they are: texts and bytes in binary, numbers as text, so that the server decides which kind of
number it wants.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from batonpass.store.postgres.arrays import Array, TextArray, dump
from batonpass.store.sql import Queries

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Row: TypeAlias = tuple[Any, ...]
Asked: TypeAlias = tuple["Statement", Mapping[str, object]]

_FIELD: Final = re.compile(r"%\((\w+)\)[sb]")
_NUMBERS: Final = count(1)
_FAILED: Final = ExecStatus.FATAL_ERROR
_TRUTH: Final = {True: b"t", False: b"f"}


class Statement:
    """One statement, and the names of its values in the order in which the server wants them."""

    __slots__ = ("fields", "name", "text")

    def __init__(self, query: str) -> None:
        self.fields: list[str] = list(dict.fromkeys(_FIELD.findall(query)))
        places = {field: f"${place}" for place, field in enumerate(self.fields, start=1)}
        self.text = _FIELD.sub(lambda found: places[found[1]], query).replace("%%", "%").encode()
        self.name = f"batonpass_{next(_NUMBERS)}".encode()


class Statements(Mapping[str, Statement]):
    """The statements of one file, by name; each is read when it is first wanted."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._read: dict[str, Statement] = {}

    def __getitem__(self, name: str) -> Statement:
        found = self._read.get(name)
        if found is None:
            found = self._read.setdefault(name, Statement(self._queries[name]))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


NOTHING: Final[Mapping[str, object]] = {}


class Channel:
    """What one connection has prepared, and how its rows are read. Belongs to whoever the connection is lent to."""

    def __init__(self, connection: Connection) -> None:
        self._pgconn = connection.pgconn
        self._prepared: set[Statement] = set()
        self._transformer = Transformer(connection)

    def talk(self, asked: Sequence[Asked]) -> PQGen[list[list[Row]]]:
        """Ask all in one round trip, in one transaction unless one is open already.

        Raises what the server said to the first that failed; then nothing of it happened.
        """
        for statement, _ in asked:
            if statement not in self._prepared:
                self._pgconn.send_prepare(statement.name, statement.text)
                self._rows((yield from generators.execute(self._pgconn)))
                self._prepared.add(statement)
        if len(asked) == 1:
            self._send(*asked[0])
            return [self._rows((yield from generators.execute(self._pgconn)))]
        # What is sent before one sync is one transaction for the server. After a failure it skips the rest.
        self._pgconn.enter_pipeline_mode()
        for statement, values in asked:
            self._send(statement, values)
        self._pgconn.pipeline_sync()
        yield from generators.send(self._pgconn)
        answers: list[list[PGresult]] = []
        # The commit comes with the sync, and can fail as any other statement.
        while not answers or answers[-1][0].status != ExecStatus.PIPELINE_SYNC:
            answers += ((yield from generators.fetch_many(self._pgconn)),)
        self._pgconn.exit_pipeline_mode()
        return [self._rows(answer) for answer in answers[:-1]][: len(asked)]

    def _send(self, statement: Statement, values: Mapping[str, object]) -> None:
        given: list[bytes | None] = []
        formats: list[int] = []
        for field in statement.fields:
            value = values[field]
            # Texts in binary: as text they would end at a zero byte, without a word.
            match value:
                case None:
                    given.append(None)
                    formats.append(Format.TEXT)
                case str():
                    given.append(value.encode())
                    formats.append(Format.BINARY)
                case bytes():
                    given.append(value)
                    formats.append(Format.BINARY)
                case bool():
                    given.append(_TRUTH[value])
                    formats.append(Format.TEXT)
                case int():
                    given.append(b"%d" % value)
                    formats.append(Format.TEXT)
                case Array():
                    given.append(dump(value))
                    formats.append(Format.BINARY)
                case list() | tuple():
                    given.append(dump(TextArray(value)))
                    formats.append(Format.BINARY)
                case _:
                    raise TypeError(f"{field} cannot be sent: {type(value).__name__}")
        self._pgconn.send_query_prepared(statement.name, given, formats, Format.BINARY)

    def _rows(self, results: Sequence[PGresult]) -> list[Row]:
        result = results[0]
        if result.status == _FAILED:
            raise psycopg.errors.error_from_result(result, "utf-8")
        if not result.nfields:
            return []
        self._transformer.set_pgresult(result, format=Format.BINARY)
        return self._transformer.load_rows(0, result.ntuples, tuple)


_CHANNEL: Final = "_batonpass_channel"


def ask(connection: Connection, statement: Statement, values: Mapping[str, object] = NOTHING) -> list[Row]:
    """Run one statement and return its rows. Raises an error of the driver."""
    (rows,) = ask_all(connection, ((statement, values),))
    return rows


def ask_all(connection: Connection, asked: Sequence[Asked]) -> list[list[Row]]:
    """Run some statements in one round trip and one transaction, and return the rows of each."""
    # Kept by the connection itself, and gone with it: what reads its rows holds on to it. In a table of ours, however
    # weak, every connection that there ever was would stay.
    kept = vars(connection)
    channel: Channel | None = kept.get(_CHANNEL)
    if channel is None:
        channel = kept[_CHANNEL] = Channel(connection)
    return connection.wait(channel.talk(asked))
