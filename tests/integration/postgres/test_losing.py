"""Connections that break and servers that go away: nothing acknowledged is lost, nothing is written twice."""

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from psycopg._preparing import PrepareManager

from batonpass.errors import OutcomeUnknownError, StaleHeadError, StoreUnavailableError
from batonpass.ledger.position import Working
from batonpass.model.base.ids import RunId
from batonpass.model.ledger.run import Run
from batonpass.model.ledger.stream import Stream
from batonpass.store.port import LedgerView, ReceiptQuery
from batonpass.store.postgres.connections import STATEMENTS
from batonpass.store.postgres.prepared_statements import Channel, PreparedStatement, ask, ask_all
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe, a_scribe
from batonpass.testing.conformance.support import all_receipts, an_entry, head_of
from tests.integration.postgres.proxy import Lost, Proxy
from tests.integration.postgres.support import (
    a_transaction,
    database_of,
    digests_in,
    entries_after,
    eventually,
    meanwhile,
    next_head,
    waiting_backends,
)
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres

BRIEFLY = timedelta(seconds=0.5)


@pytest.fixture
def proxy(postgres: Server) -> Iterator[Proxy]:
    """Return a wire to the server that can be cut."""
    with Proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
def distant(postgres: Server, postgres_url: str, proxy: Proxy) -> Iterator[PostgresStore]:
    """Return a store at the other end of the wire, with one connection: what is lost next is of the next statement."""
    url = postgres.url(database_of(postgres_url), port=proxy.port)
    with closing(PostgresStore(url, connections=1)) as store:
        yield store


def beginning(scribe: Scribe) -> tuple[Working, Stream]:
    working = scribe.start()
    return working, head_of(scribe.store, working)


@pytest.mark.parametrize("count", [1, 3], ids=["one entry", "a batch"])
def test_a_lost_reply_is_asked_for(distant: PostgresStore, proxy: Proxy, count: int) -> None:
    """The server has committed and its answer never comes: the append is a success, and is there once."""
    scribe = a_scribe(distant)
    working, head = beginning(scribe)
    entries = entries_after(scribe, working, head, count)
    proxy.lose(Lost.REPLY)
    distant.append(entries)

    assert [head.head, *(entry.signed.digest for entry in entries)] == digests_in(distant, working)


def test_a_lost_reply_is_asked_for_after_others_went_on(
    distant: PostgresStore,
    proxy: Proxy,
    store: PostgresStore,
) -> None:
    """What was committed is found also when it is not the head any more."""
    scribe = a_scribe(distant)
    working, head = beginning(scribe)
    mine, theirs = entries_after(scribe, working, head, 2)
    proxy.lose(Lost.REPLY, then=lambda: store.append([theirs]))
    distant.append([mine])

    assert [head.head, mine.signed.digest, theirs.signed.digest] == digests_in(store, working)


@pytest.mark.parametrize("count", [1, 3], ids=["one entry", "a batch"])
def test_a_lost_request_is_made_again(distant: PostgresStore, proxy: Proxy, count: int) -> None:
    """The server never heard of it, says so when it is asked, and gets the same bytes again."""
    scribe = a_scribe(distant)
    working, head = beginning(scribe)
    entries = entries_after(scribe, working, head, count)
    proxy.lose(Lost.REQUEST)
    distant.append(entries)

    assert [head.head, *(entry.signed.digest for entry in entries)] == digests_in(distant, working)


@pytest.mark.parametrize("lost", Lost)
def test_another_thread_finds_out_as_well(distant: PostgresStore, proxy: Proxy, lost: Lost) -> None:
    """Beside the main thread the driver waits for the answer; what became of a lost one is found in the same way."""
    scribe = a_scribe(distant)
    working, head = beginning(scribe)
    entry = an_entry(scribe, working, head)
    proxy.lose(lost)
    with meanwhile(lambda: distant.append([entry])) as append:
        append.result()

    assert [head.head, entry.signed.digest] == digests_in(distant, working)


def test_a_lost_request_is_refused_if_another_came_first(
    distant: PostgresStore,
    proxy: Proxy,
    store: PostgresStore,
) -> None:
    """The place in the stream was taken while we were gone: stale, and not in doubt."""
    scribe = a_scribe(distant)
    working, head = beginning(scribe)
    mine, theirs = an_entry(scribe, working, head), an_entry(scribe, working, head)
    proxy.lose(Lost.REQUEST, then=lambda: store.append([theirs]))

    with pytest.raises(StaleHeadError):
        distant.append([mine])
    assert [head.head, theirs.signed.digest] == digests_in(store, working)


def test_founding_survives_a_lost_reply(distant: PostgresStore, proxy: Proxy) -> None:
    """Whoever founds a ledger and does not hear of it learns that it is founded, by itself."""
    proxy.lose(Lost.REPLY)
    scribe = a_scribe(distant)

    with distant.view() as view:
        assert scribe.root.public_key == view.info().root_key
    assert 1 == len(all_receipts(distant))


def test_what_cannot_be_asked_is_said_to_be_unknown(postgres: Server, postgres_url: str, proxy: Proxy) -> None:
    """The connection broke during a commit and nobody answers any more: neither success nor failure is claimed."""
    url = postgres.url(database_of(postgres_url), port=proxy.port)
    with closing(PostgresStore(url, connections=1, wait_for=BRIEFLY)) as distant:
        scribe = a_scribe(distant)
        working, head = beginning(scribe)
        proxy.lose(Lost.REPLY, then=proxy.cut)

        with pytest.raises(OutcomeUnknownError, match="cannot be reached"):
            distant.append([an_entry(scribe, working, head)])


def test_what_was_never_sent_is_not_in_doubt(postgres: Server, postgres_url: str, proxy: Proxy) -> None:
    """A store that notices before it sends that the server is gone says that, and no more."""
    url = postgres.url(database_of(postgres_url), port=proxy.port)
    with closing(PostgresStore(url, connections=1, wait_for=BRIEFLY)) as distant:
        scribe = a_scribe(distant)
        working, head = beginning(scribe)
        proxy.cut()

        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            distant.append([an_entry(scribe, working, head)])


def test_a_killed_session_is_replaced(
    postgres: Server,
    postgres_url: str,
    store: PostgresStore,
    scribe: Scribe,
) -> None:
    """An operator ends the session in the middle of an append; the append is made again in another one."""
    working, head = beginning(scribe)
    entry = an_entry(scribe, working, head)
    with a_transaction(postgres, postgres_url) as other:
        other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [working.run.id])
        with meanwhile(lambda: store.append([entry])) as append:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            (killed,) = waiting_backends(postgres, postgres_url)
            postgres.execute("SELECT pg_terminate_backend(%s)", killed)
            eventually(lambda: waiting_backends(postgres, postgres_url) not in ([], [killed]))
            other.commit()
            append.result()

    assert [head.head, entry.signed.digest] == digests_in(store, working)


def test_the_first_may_still_be_under_way(
    postgres: Server,
    postgres_url: str,
    distant: PostgresStore,
    proxy: Proxy,
) -> None:
    """The wire breaks while the server still works on the append; the second waits for the first, which wins."""
    scribe = a_scribe(distant)
    working, head = beginning(scribe)
    entry = an_entry(scribe, working, head)
    with a_transaction(postgres, postgres_url) as other:
        other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [working.run.id])
        with meanwhile(lambda: distant.append([entry])) as append:
            eventually(lambda: waiting_backends(postgres, postgres_url))
            proxy.break_connections()
            eventually(lambda: 2 == len(waiting_backends(postgres, postgres_url)))
            other.commit()
            append.result()

    assert [head.head, entry.signed.digest] == digests_in(distant, working)


def test_a_view_that_breaks_says_so_and_the_next_one_works(
    distant: PostgresStore,
    proxy: Proxy,
) -> None:
    """Half a moment is of no use: what was being read must be read again from the beginning."""
    lead = a_scribe(distant).start()
    with distant.view() as view:
        view.info()  # the moment is that of the first look
        proxy.lose(Lost.REPLY)
        with pytest.raises(StoreUnavailableError):
            view.get_run(lead.run.id)
    with distant.view() as view:
        assert lead.run == view.get_run(lead.run.id)


@pytest.mark.parametrize("spared", [0, 1], ids=["its beginning", "the first answer"])
@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda view, run: [view.get_run(run)], id="a row"),
        pytest.param(lambda view, run: list(view.find_runs(root=run)), id="all rows of a tree"),
        pytest.param(lambda view, _: list(view.find_runs()), id="rows through a cursor"),
    ],
)
def test_a_view_is_opened_again_if_nothing_was_read_yet(
    distant: PostgresStore, proxy: Proxy, read: Callable[[LedgerView, RunId], list[Run]], spared: int
) -> None:
    """Nobody has seen anything of the moment that was lost, so nobody has to know."""
    lead = a_scribe(distant).start()
    with distant.view():
        pass  # now there is a connection for reading, and the next view begins on it
    proxy.lose(Lost.REPLY, spared=spared)
    with distant.view() as view:
        assert [lead.run] == read(view, lead.run.id)


def _restart(how: signal.Signals) -> Callable[[Server], None]:
    def act(server: Server) -> None:
        server.stop(how=how)
        server.start()

    return act


def _kill_a_backend(server: Server) -> None:
    """Kill a session as the out-of-memory killer does: the server ends all others and recovers."""
    (pid,) = server.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'batonpass' LIMIT 1")[0]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(_restart(signal.SIGINT), id="restarted"),
        pytest.param(_restart(signal.SIGQUIT), id="torn down and recovered"),
        pytest.param(_kill_a_backend, id="crashed"),
    ],
)
def test_appends_go_on_when_the_server_was(
    postgres: Server,
    store: PostgresStore,
    scribe: Scribe,
    act: Callable[[Server], None],
) -> None:
    """Threads append while the server goes away and comes back: what was acknowledged is there, once, nothing else."""
    writers = [_Writer(scribe) for _ in range(4)]
    for writer in writers:
        writer.start()
    eventually(lambda: min(len(writer.acknowledged) for writer in writers) > 10)
    act(postgres)
    seen = [len(writer.acknowledged) for writer in writers]
    eventually(lambda: all(len(w.acknowledged) > n + 10 or w.error for w, n in zip(writers, seen, strict=True)))
    for writer in writers:
        writer.stop()

    assert [None] * 4 == [writer.error for writer in writers]
    assert [writer.acknowledged for writer in writers] == [digests_in(store, writer.working) for writer in writers]
    store.sequence()
    with store.view() as view:
        positions = [found.position for found in view.find_receipts(ReceiptQuery(first=1))]
    assert list(range(1, len(all_receipts(store)) + 1)) == positions


class _Writer(threading.Thread):
    """Appends to a run of its own until it is stopped, and remembers what was acknowledged."""

    def __init__(self, scribe: Scribe) -> None:
        super().__init__()
        self.working, self._head = beginning(scribe)
        self.acknowledged = [self._head.head]
        self.error: BaseException | None = None
        self._scribe = scribe
        self._stopped = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopped.is_set():
                entry = an_entry(self._scribe, self.working, self._head)
                self._scribe.store.append([entry])
                self._head = next_head(self._head, entry)
                self.acknowledged.append(entry.signed.digest)
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            self.error = error

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def test_who_is_interrupted_in_the_middle_of_an_answer_gives_the_connection_up(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the answer would be taken for the answer to the next question."""

    def interrupted(_: Channel) -> None:
        raise KeyboardInterrupt

    with closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        with monkeypatch.context() as patch:
            patch.setattr(Channel, "_await", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ask(connection, PreparedStatement("SELECT 1"))

        assert connection.closed


def test_an_interrupt_while_a_view_begins_spoils_no_connection(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver had counted the beginning by then, and prepared it the fifth time: it has two statements."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PrepareManager, "validate", interrupted)
        with store.view() as view, pytest.raises(KeyboardInterrupt):
            [*view.find_runs(limit=1)]

    for _ in range(10):
        with store.view() as view:
            assert [] == [*view.find_runs(limit=1)]


def test_what_is_larger_than_the_wire_goes_both_ways_at_once(postgres_url: str) -> None:
    """Neither side waits for the other to read first."""
    large = bytes(8_000_000)
    repeated = PreparedStatement("SELECT %(given)b::bytea")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        answers = ask_all(connection, [(repeated, {"given": large})] * 4)

    assert [[(large,)]] * 4 == answers


def test_a_connection_that_is_gone_is_not_kept(postgres_url: str) -> None:
    """Who connects again for months does not hold every connection that there ever was."""
    with closing(PostgresStore(postgres_url)) as store:
        connections = store._connections
        with connections.writer(connections.patience()) as connection:
            ask(connection, STATEMENTS["read_ledger"])
            known = weakref.ref(connection)
    del connection
    gc.collect()

    assert known() is None
