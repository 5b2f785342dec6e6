"""Prepared statements: each connection prepares a statement once, and several statements go in one round trip.

The driver's cursors inspect every value each time, which takes longer than a short statement on the server. Here texts
and bytes are sent in binary, and numbers as text, so that the server decides which type of number it needs.
"""

import re
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from batonpass.store.postgres.arrays import BytesArray, NumberArray, TextArray, TruthArray, dump
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


def _dump_texts(texts: Sequence[str]) -> bytes:
    return dump(TextArray(texts))


# How a value of each type is sent. Texts in binary: in text format they would silently end at a zero byte.
_WAYS: Final[Mapping[type, tuple[Callable[[Any], bytes], int]]] = {
    str: (str.encode, _BINARY),
    bytes: (bytes, _BINARY),
    bool: (_TRUTH.__getitem__, _TEXT),
    int: (b"%d".__mod__, _TEXT),
    TextArray: (dump, _BINARY),
    BytesArray: (dump, _BINARY),
    NumberArray: (dump, _BINARY),
    TruthArray: (dump, _BINARY),
    list: (_dump_texts, _BINARY),
    tuple: (_dump_texts, _BINARY),
}


def _way_of(field: str, value: object) -> tuple[Callable[[Any], bytes], int]:
    """Return how a value is sent whose type is derived from one of these, as a member of an enumeration is."""
    for kind, way in _WAYS.items():
        if isinstance(value, kind):
            return way
    raise TypeError(f"{field} cannot be sent: {type(value).__name__}")


class PreparedStatement:
    """One statement, and the names of its parameters in the order in which the server expects them."""

    __slots__ = ("fields", "name", "text")

    def __init__(self, query: str) -> None:
        self.fields: list[str] = list(dict.fromkeys(_FIELD.findall(query)))
        places = {field: f"${place}" for place, field in enumerate(self.fields, start=1)}
        self.text = _FIELD.sub(lambda found: places[found[1]], query).replace("%%", "%").encode()
        self.name = f"batonpass_{next(_NUMBERS)}".encode()


def in_order(first: str, second: str) -> PreparedStatement:
    """Return one statement in place of two that begin with SELECT; it does the first one first.

    A statement costs the server and the driver about as much to begin as a short one to run.
    """
    return PreparedStatement(f"{first.rstrip().removesuffix(';')}, {second.lstrip().removeprefix('SELECT')}")


class Statements(Mapping[str, PreparedStatement]):
    """The statements of one file, by name; each is parsed when it is first used."""

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
    """The prepared statements of one connection, and the code that sends them.

    It belongs to the borrower of the connection. The driver waits through a generator for each step of the protocol,
    which costs twice as much as the work itself. Here libpq waits for the answer to a single statement. Only in the
    main thread, which Ctrl-C may interrupt, and for several statements, the thread waits for the socket itself. Other
    threads run meanwhile in both cases.

    Each call that lets go of the interpreter's lock lets another thread take it, and then our thread has to be woken
    again. `is_busy` is such a call, so it is asked as rarely as possible.
    """

    def __init__(self, connection: Connection) -> None:
        # Not the connection itself, which keeps us: in a circle it would outlive its last borrower. If an interrupt has
        # lost it, it would then hold its place in the pool until the interpreter looks for circles.
        self._pgconn = connection.pgconn
        self._prepared: set[PreparedStatement] = set()
        self._transformer = Transformer()
        self._readable = select.poll()
        self._readable.register(connection.fileno(), select.POLLIN)
        self._any = select.poll()
        self._any.register(connection.fileno(), select.POLLIN | select.POLLOUT)

    def talk(self, asked: Sequence[Asked]) -> list[list[Row]]:
        """Run all statements in one round trip, in one transaction unless one is open already. Return the rows of each.

        Raises the server's error about the first that failed; then none of them has had any effect.
        """
        try:
            for statement, _ in asked:
                if statement not in self._prepared:
                    self._pgconn.send_prepare(statement.name, statement.text)
                    self._rows(self._answer())
                    self._prepared.add(statement)
            if len(asked) == 1:
                return [self._rows(self._ask(*asked[0]))]
            return [self._rows(result) for result in self._answers(asked)][: len(asked)]
        except psycopg.Error:
            raise
        except BaseException:
            # Interrupted in the middle of an answer: its rest would be taken for the answer to the next question.
            self._pgconn.finish()
            raise

    def _ask(self, statement: PreparedStatement, values: Mapping[str, object]) -> PGresult:
        """Return the server's answer to a single statement."""
        # No signal is handled in other threads: nothing is kept waiting there but the thread itself.
        if threading.get_ident() != threading.main_thread().ident:
            given, formats = _encoded(statement, values)
            return self._pgconn.exec_prepared(statement.name, given, formats, Format.BINARY)  # type: ignore[arg-type]  # its stub forgets NULL
        self._send(statement, values)
        return self._answer()

    def _answers(self, asked: Sequence[Asked]) -> list[PGresult]:
        # Everything before one sync is one transaction for the server. After a failure it skips the rest.
        pgconn = self._pgconn
        pgconn.enter_pipeline_mode()
        for statement, values in asked:
            self._send(statement, values)
        pgconn.pipeline_sync()
        self._flush()
        answers: list[PGresult] = []
        is_there = True
        # The commit happens at the sync, and can fail like any other statement.
        while True:
            if not is_there and pgconn.is_busy():
                self._await()
            result = pgconn.get_result()
            # The end of an answer (None) is never waited for in a pipeline.
            is_there = result is not None
            if result is not None:
                if result.status == _SYNC:
                    break
                answers.append(result)
        pgconn.exit_pipeline_mode()
        return answers

    def _answer(self) -> PGresult:
        """Return the server's answer to the statements that were sent."""
        self._flush()
        pgconn = self._pgconn
        result = pgconn.get_result()
        if result is None:
            raise psycopg.OperationalError("the connection is lost")
        while True:
            if pgconn.is_busy():
                self._await()
            if pgconn.get_result() is None:
                return result

    def _flush(self) -> None:
        """Send everything that is buffered, and wait for the first part of an answer.

        Input is read while we send, or both sides could wait for each other.
        """
        has_read = False
        while self._pgconn.flush():
            for _, event in self._any.poll():
                if event & ~select.POLLOUT:
                    self._pgconn.consume_input()
                    has_read = True
        # An answer cannot end before all is sent. If nothing was read since, its end is still to come, and wakes us.
        if not has_read or self._pgconn.is_busy():
            self._await()

    def _await(self) -> None:
        """Wait until the next part of an answer has arrived."""
        while True:
            self._readable.poll()
            self._pgconn.consume_input()
            if not self._pgconn.is_busy():
                return

    def _send(self, statement: PreparedStatement, values: Mapping[str, object]) -> None:
        self._pgconn.send_query_prepared(statement.name, *_encoded(statement, values), Format.BINARY)

    def _rows(self, result: PGresult) -> list[Row]:
        if result.status == _FAILED:
            raise psycopg.errors.error_from_result(result, "utf-8")
        if not result.nfields:
            return []
        self._transformer.set_pgresult(result, format=Format.BINARY)
        return self._transformer.load_rows(0, result.ntuples, tuple)


def _encoded(
    statement: PreparedStatement, values: Mapping[str, object]
) -> tuple[Sequence[bytes | None], Sequence[int]]:
    """Return the values of a statement in its order, and the format of each."""
    given: list[bytes | None] = []
    formats: list[int] = []
    for field in statement.fields:
        value = values[field]
        if value is None:
            given.append(None)
            formats.append(_TEXT)
            continue
        # A table and no `match`, which asks each value for one type after the other: an append has 23 of them.
        way = _WAYS.get(type(value)) or _way_of(field, value)
        given.append(way[0](value))
        formats.append(way[1])
    return given, formats


_CHANNEL: Final = "_batonpass_channel"


def ask(connection: Connection, statement: PreparedStatement, values: Mapping[str, object] = NOTHING) -> list[Row]:
    """Run one statement and return its rows. Raises an error of the driver."""
    (rows,) = ask_all(connection, ((statement, values),))
    return rows


def ask_all(connection: Connection, asked: Sequence[Asked]) -> list[list[Row]]:
    """Run several statements in one round trip and one transaction, and return the rows of each."""
    # Kept in the connection itself, and gone with it: a table of ours would have to be told when that is.
    kept = vars(connection)
    channel: Channel | None = kept.get(_CHANNEL)
    if channel is None:
        channel = kept[_CHANNEL] = Channel(connection)
    return channel.talk(asked)
