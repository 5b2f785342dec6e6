"""An append on PostgreSQL: alone, by eight threads, and with 64 in flight."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from batonpass.testing.builders import Scribe, a_scribe
from bench.effort import Effort
from bench.ledgers import closing_store, request_bytes, requests
from bench.measure import Act, Contender, race_in_turns, time_in_turns
from bench.postgres_server import missing_part, running_server
from bench.table import Row, p50, p99, rate, skipped

if TYPE_CHECKING:
    from psycopg import Connection

_IN_FLIGHT: Final = (8, 64)
_CREATE: Final = "CREATE TABLE bare (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL)"
_INSERT: Final = "INSERT INTO bare (body) VALUES (%b)"


def measure(scratch: Path, effort: Effort) -> Sequence[Row]:
    """Measure requests against inserts of the same bytes on the same server, each in a transaction of its own."""
    if (part := missing_part()) is not None:
        return [skipped("PostgreSQL append", f"install {part}")]
    with running_server(scratch) as url, closing_store(url) as store, ExitStack() as stack:
        scribe = a_scribe(store)
        bare = BarePostgres(url, request_bytes(scribe), stack)
        rows = list(_alone(scribe, bare, effort))
        for threads in _IN_FLIGHT:
            rows += _together(scribe, bare, threads, effort)
        return rows


class BarePostgres:
    """One table of one column; each thread inserts over a connection of its own, and each insert commits."""

    def __init__(self, url: str, size: int, stack: ExitStack) -> None:
        self._url = url
        self._stack = stack
        self._data = os.urandom(size)
        self._connect().execute(_CREATE)

    def share(self, _: int) -> Act:
        """Return what one thread does."""
        connection = self._connect()
        return lambda: connection.execute(_INSERT, (self._data,), prepare=True)

    def _connect(self) -> "Connection[tuple[object, ...]]":
        import psycopg  # noqa: PLC0415 - it may be missing

        return self._stack.enter_context(psycopg.connect(self._url, autocommit=True))


def _alone(scribe: Scribe, bare: BarePostgres, effort: Effort) -> Iterator[Row]:
    contenders = {"ours": requests(scribe), "bare": bare.share(0)}
    taken = time_in_turns(contenders, turns=effort.turns // 2, acts=effort.acts)
    for name, figure in (("p50", p50), ("p99", p99)):
        yield Row(
            what=f"PostgreSQL append, 1 thread, {name}",
            ours=figure(taken["ours"]),
            against="bare INSERT, autocommit",
            theirs=figure(taken["bare"]),
        )


def _together(scribe: Scribe, bare: BarePostgres, threads: int, effort: Effort) -> Iterator[Row]:
    contenders = {
        "ours": Contender(make=lambda _: requests(scribe), threads=threads),
        "bare": Contender(make=bare.share, threads=threads),
    }
    rates = race_in_turns(contenders, turns=effort.race_turns, seconds=effort.race_seconds)
    yield Row(
        what=f"PostgreSQL append, {threads} in flight",
        ours=rate(rates["ours"]),
        against=f"bare INSERT, {threads} threads and connections",
        theirs=rate(rates["bare"]),
    )
