"""Statements as the server gets them: each connection prepares one once, and several go in one round trip.

The driver's cursors look at every value, every time, and take longer for that than the server for a short statement.
Here the values go as they are: texts and bytes in binary, numbers as text, so that the server decides which kind of
number it wants.
"""

import re
import select
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from batonpass.store.postgres.arrays import Array, TextArray, dump
from batonpass.store.sql import Queries

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Row: TypeAlias = tuple[Any, ...]
Asked: TypeAlias = tuple["PreparedStatement", Mapping[str, object]]

_FIELD: Final = re.compile(r"%\((\w+)\)[sb]")
_NUMBERS: Final = count(1)
_FAILED: Final = ExecStatus.FATAL_ERROR
_SYNC: Final = ExecStatus.PIPELINE_SYNC
_TEXT: Final = int(Format.TEXT)
_BINARY: Final = int(Format.BINARY)
_TRUTH: Final = {True: b"t", False: b"f"}


class PreparedStatement:
    """One statement, and the names of its values in the order in which the server wants them."""

    __slots__ = ("fields", "name", "text")

    def __init__(self, query: str) -> None:
        self.fields: list[str] = list(dict.fromkeys(_FIELD.findall(query)))
        places = {field: f"${place}" for place, field in enumerate(self.fields, start=1)}
        self.text = _FIELD.sub(lambda found: places[found[1]], query).replace("%%", "%").encode()
        self.name = f"batonpass_{next(_NUMBERS)}".encode()


class Statements(Mapping[str, PreparedStatement]):
    """The statements of one file, by name; each is read when it is first wanted."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._read: dict[str, PreparedStatement] = {}

    def __getitem__(self, name: str) -> PreparedStatement:
        found = self._read.get(name)
        if found is None:
            found = self._read.setdefault(name, PreparedStatement(self._queries[name]))
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


NOTHING: Final[Mapping[str, object]] = {}


class Channel:
    """What one connection has prepared, and how its rows are read. Belongs to whoever the connection is lent to.

    The driver's own way of waiting goes through a generator for each step of the protocol, and costs twice as much as
    all that it waits for. Here the thread waits for the socket, and lets the others run meanwhile.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._prepared: set[PreparedStatement] = set()
        self._transformer = Transformer(connection)
        self._readable = select.poll()
        self._readable.register(connection.fileno(), select.POLLIN)
        self._any = select.poll()
        self._any.register(connection.fileno(), select.POLLIN | select.POLLOUT)

    def talk(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """Ask all in one round trip, in one transaction unless one is open already.

        Raises what the server said to the first that failed; then nothing of it happened.
        """
        try:
            for statement, _ in asked:
                if statement not in self._prepared:
                    self._pgconn.send_prepare(statement.name, statement.text)
                    self._rows(self._answer())
                    self._prepared.add(statement)
            if len(asked) == 1:
                self._send(*asked[0])
                return [self._rows(self._answer())]
            return [self._rows(result) for result in self._answers(asked)][: len(asked)]
        except psycopg.Error:
            raise
        except BaseException:
            # In the middle of an answer: nobody could tell any more to which question the rest of it belongs.
            self._connection.close()
            raise

    def _answers(self, asked: Sequence[Asked]) -> list[PGresult]:
        # What is sent before one sync is one transaction for the server. After a failure it skips the rest.
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        for statement, values in asked:
            self._send(statement, values)
        pgconn.pipeline_sync()
        self._flush()
        answers: list[PGresult] = []
        # The commit comes with the sync, and can fail as any other statement.
        while True:
            if pgconn.is_busy():
                self._await()
            result = pgconn.get_result()
            if result is not None:
                if result.status == _SYNC:
                    break
                answers.append(result)
        pgconn.exit_pipeline_mode()
        return answers

    def _answer(self) -> PGresult:
        """Return what the server says to the one thing that it was asked."""
        self._flush()
        pgconn = self._pgconn
        if pgconn.is_busy():
            self._await()
        result = pgconn.get_result()
        if result is None:
            raise psycopg.OperationalError("the connection is lost")
        while True:
            if pgconn.is_busy():
                self._await()
            if pgconn.get_result() is None:
                return result

    def _flush(self) -> None:
        """Send what is still to be sent. What comes in meanwhile is read, or both sides would wait for each other."""
        while self._pgconn.flush():
            for _, event in self._any.poll():
                if event & ~select.POLLOUT:
                    self._pgconn.consume_input()

    def _await(self) -> None:
        """Wait until the next part of an answer is there."""
        while True:
            self._readable.poll()
            self._pgconn.consume_input()
            if not self._pgconn.is_busy():
                return

    def _send(self, statement: PreparedStatement, values: Mapping[str, object]) -> None:
        given: list[bytes | None] = []
        formats: list[int] = []
        for field in statement.fields:
            value = values[field]
            # Texts in binary: as text they would end at a zero byte, without a word.
            match value:
                case str():
                    given.append(value.encode())
                    formats.append(_BINARY)
                case bytes():
                    given.append(value)
                    formats.append(_BINARY)
                case None:
                    given.append(None)
                    formats.append(_TEXT)
                case bool():
                    given.append(_TRUTH[value])
                    formats.append(_TEXT)
                case int():
                    given.append(b"%d" % value)
                    formats.append(_TEXT)
                case Array():
                    given.append(dump(value))
                    formats.append(_BINARY)
                case list() | tuple():
                    given.append(dump(TextArray(value)))
                    formats.append(_BINARY)
                case _:
                    raise TypeError(f"{field} cannot be sent: {type(value).__name__}")
        self._pgconn.send_query_prepared(statement.name, given, formats, Format.BINARY)

    def _rows(self, result: PGresult) -> list[Row]:
        if result.status == _FAILED:
            raise psycopg.errors.error_from_result(result, "utf-8")
        if not result.nfields:
            return []
        self._transformer.set_pgresult(result, format=Format.BINARY)
        return self._transformer.load_rows(0, result.ntuples, tuple)


_CHANNEL: Final = "_batonpass_channel"


def ask(connection: Connection, statement: PreparedStatement, values: Mapping[str, object] = NOTHING) -> list[Row]:
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
    return channel.talk(asked)
