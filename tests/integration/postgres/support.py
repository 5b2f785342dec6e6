"""What the tests of the PostgreSQL store share."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from msgspec.structs import replace

from batonpass.ledger.position import Working
from batonpass.model.base.ids import Digest, StreamId
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.stream import Stream
from batonpass.store.port import LedgerStore, ReceiptQuery
from batonpass.testing import Scribe
from batonpass.testing.conformance.support import an_entry
from batonpass.wire.canonical import digest
from tests.postgres_server import Server


def database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def eventually(is_so: Callable[[], object]) -> None:
    """Return when something is so that another process brings about."""
    end = time.monotonic() + 60  # two programs that start on a busy machine take more than ten seconds
    while not is_so():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.005)


def waiting_backends(server: Server, url: str) -> list[int]:
    """Return the sessions of a store that wait for another one's lock."""
    rows = server.execute(
        "SELECT pid FROM pg_stat_activity "
        "WHERE datname = %s AND application_name = 'batonpass' AND wait_event_type = 'Lock'",
        database_of(url),
    )
    return [pid for (pid,) in rows]


@contextmanager
def a_transaction(server: Server, url: str) -> Iterator[psycopg.Connection[Any]]:
    """Lend a session of somebody else, in a transaction that is committed at the end."""
    with psycopg.connect(server.admin_url(database_of(url)), autocommit=True) as connection:
        connection.execute("BEGIN")
        yield connection


@contextmanager
def meanwhile(act: Callable[[], object]) -> Iterator[Future[object]]:
    """Do something in a thread while the block runs; its result says how it went."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(act)


def next_head(head: Stream, entry: Entry) -> Stream:
    """Return where a stream stands after an entry."""
    return replace(head, seq=entry.signed.receipt.seq, head=entry.signed.digest)


def entries_after(scribe: Scribe, working: Working, head: Stream, count: int) -> list[Entry]:
    """Return entries of a run of which each follows the one before."""
    entries: list[Entry] = []
    for _ in range(count):
        entries.append(an_entry(scribe, working, head))
        head = next_head(head, entries[-1])
    return entries


def digests_in(store: LedgerStore, working: Working) -> list[Digest]:
    """Return the digests of a run's receipts, by seq."""
    with store.view() as view:
        return [digest(found.payload) for found in view.find_receipts(ReceiptQuery(stream=StreamId(working.run.id)))]
