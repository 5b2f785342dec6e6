"""What is special about the ledger in one PostgreSQL database: lost answers, the order of positions, interrupts."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from batonpass.errors import BatonpassError, OutcomeUnknownError, StoreError
from batonpass.testing import FrozenClock
from batonpass.testing.ledgers import Ledger, a_ledger

pytestmark = pytest.mark.postgres
Opener = Callable[..., Ledger]
_WAIT_SECONDS = 15.0


@pytest.fixture
def open_ledger(postgres_url: str) -> Iterator[Opener]:
    """Return what opens the ledger, as another process would."""
    with ExitStack() as stack:

        def opened(url: str = postgres_url, **how: Any) -> Ledger:  # noqa: ANN401 - as `a_ledger` takes it
            ledger = a_ledger(url, **how)
            stack.enter_context(closing(ledger.store))
            return ledger

        yield opened


@pytest.fixture
def ledger(open_ledger: Opener) -> Ledger:
    return open_ledger().found()


@pytest.fixture
def sql(postgres_url: str) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    """Return a connection to the same database, which is no ledger's: its transaction lasts until it is rolled back."""
    with psycopg.connect(postgres_url) as connection:
        yield connection


class Act(threading.Thread):
    """Something that is done meanwhile; `code` is of the error that it raised, empty if none."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self._act = act
        self.code = "?"
        self.start()

    def run(self) -> None:
        """Do it."""
        try:
            self._act()
        except BatonpassError as error:
            self.code = error.code
        else:
            self.code = ""

    def result(self) -> str:
        """Return the code, when it is done."""
        self.join(_WAIT_SECONDS)
        return self.code


def wait_for_waiting(url: str, count: int) -> None:
    """Return when so many of this database's sessions wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as connection:
        assert FrozenClock().wait(lambda: connection.execute(query).fetchall() == [(count,)], _WAIT_SECONDS)


# Lost answers


class Wire:
    """A wire to the server, which can lose a request, its answer, or only itself; or refuse to connect."""

    def __init__(self, url: str) -> None:
        self._server = (urlsplit(url).hostname, urlsplit(url).port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{self._server[1]}/", f":{self._listener.getsockname()[1]}/")
        self.losing: str | None = None
        self.lost = threading.Event()
        self.is_down = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_down:
                    client.close()
                    continue
                server = socket.create_connection(self._server)
                self._pairs.append((client, server))
                for ends in ((client, server, "request"), (server, client, "answer")):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, what: str) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                losing = self.losing
                if losing == "wire" and what == "request":
                    target.sendall(data)  # it arrives, and nobody waits for the answer
                if losing == what or (losing == "wire" and what == "request"):
                    self.losing = None
                    (source if what == "request" else target).shutdown(socket.SHUT_RDWR)
                    self.lost.set()
                    return
                target.sendall(data)

    def go_down(self) -> None:
        """Lose every connection, and take none."""
        self.is_down = True
        for pair in self._pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it."""
        self.go_down()
        self._listener.close()


@pytest.fixture
def wire(postgres_url: str) -> Iterator[Wire]:
    with closing(Wire(postgres_url)) as wire:
        yield wire


class Hasty(FrozenClock):
    """A system that has no time: it waits for nothing."""

    def wait(self, until: Callable[[], bool], timeout: float) -> bool:
        """Return whether it is true now."""
        assert timeout >= 0
        return until()


@pytest.mark.parity("postgres-lost-answer-is-settled")
@pytest.mark.parametrize("losing", ["request", "answer"])
def test_lost_answer_is_no_unknown_outcome(open_ledger: Opener, wire: Wire, losing: str) -> None:
    """Cut before the request arrives, or between the commit and its answer: it is written, and once."""
    ledger = open_ledger(wire.url).found()
    run = ledger.a_run()
    for number in (2, 3):
        wire.losing = losing
        wire.lost.clear()

        signed = ledger.write("run.recorded", run)

        assert wire.lost.is_set()
        assert [number] == [each.receipt.seq for each in ledger.store.receipts(run) if each == signed]
    assert ledger.expected_rows() == ledger.rows()


@pytest.mark.parity("postgres-lost-answer-is-settled")
def test_lost_answer_of_what_is_refused(open_ledger: Opener, wire: Wire) -> None:
    """The second answer is a refusal, and the caller is told of it."""
    ledger = open_ledger(wire.url).found()
    run = ledger.a_run()
    stale = ledger.sign("run.recorded", run)
    ledger.write("run.recorded", run)
    wire.losing = "answer"

    assert "ledger.stale_head" == ledger.verdict(stale)
    assert wire.lost.is_set()


@pytest.mark.parity("postgres-lost-answer-is-settled")
def test_old_backend_that_still_writes(
    open_ledger: Opener, wire: Wire, postgres_url: str, sql: "psycopg.Connection[Any]"
) -> None:
    """To find nothing would prove nothing: the second sending waits for the first, and finds what it wrote."""
    ledger = open_ledger(wire.url).found()
    run = ledger.a_run()
    signed = ledger.sign("run.recorded", run)
    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (run,))
    wire.losing = "wire"

    append = Act(lambda: ledger.store.append([signed]))
    assert wire.lost.wait(_WAIT_SECONDS)
    wait_for_waiting(postgres_url, 2)
    sql.rollback()

    assert "" == append.result()
    ledger.note(signed)
    assert ledger.expected_rows() == ledger.rows()


def test_lost_answer_of_a_batch(open_ledger: Opener, wire: Wire, sql: "psycopg.Connection[Any]") -> None:
    """Each that waits is told of its own entry: what was written is not written twice, what is refused is refused."""
    ledger = open_ledger(wire.url).found()
    runs = [ledger.a_run() for _ in range(6)]
    first, *entries = [ledger.sign("run.recorded", run) for run in runs]
    stale = ledger.sign("run.recorded", runs[0], seq=9)
    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (runs[0],))
    acts = [Act(lambda one=one: ledger.store.append([one])) for one in (first, *entries, stale)]  # type: ignore[misc]
    FrozenClock().wait(lambda: False, 0.1)  # all but the first wait for it, and are the next batch
    sql.rollback()
    wire.losing = "answer"

    assert [""] * 6 == [act.result() for act in acts[:6]]
    assert "ledger.rewound" == acts[6].result()
    assert wire.lost.is_set()
    for signed in (first, *entries):
        ledger.note(signed)
    assert ledger.expected_rows() == ledger.rows()


def test_server_that_stays_away_after_it_was_sent(open_ledger: Opener, wire: Wire) -> None:
    """Then nobody can tell. When the server is back the caller looks, and goes on."""
    ledger = open_ledger(wire.url, system=Hasty()).found()
    run = ledger.a_run()
    signed = ledger.sign("run.recorded", run)
    wire.losing = "answer"
    wire.is_down = True

    with pytest.raises(OutcomeUnknownError):
        ledger.store.append([signed])

    wire.is_down = False
    ledger.append(signed)
    assert ledger.expected_rows() == ledger.rows()


def test_server_that_is_away_before_it_is_sent(open_ledger: Opener, wire: Wire) -> None:
    """Then nothing was written, which is known; reads say that the ledger cannot be read."""
    ledger = open_ledger(wire.url, system=Hasty()).found()
    run = ledger.a_run()
    wire.go_down()
    with suppress(OutcomeUnknownError):
        ledger.store.append([ledger.sign("run.recorded", run)])  # finds out that the connection is gone

    assert "store.unavailable" == ledger.verdict(ledger.sign("run.recorded", run))
    with pytest.raises(StoreError):
        ledger.store.find_stream(run)

    wire.is_down = False
    assert "" == ledger.verdict(ledger.sign("run.recorded", run))


def test_server_ends_all_sessions_between_two_acts(ledger: Ledger, sql: "psycopg.Connection[Any]") -> None:
    """A server that was started again is nobody's error: not of who writes next, and not of who reads."""
    run = ledger.a_run()
    for _ in range(2):
        sql.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )

        assert ledger.tables.find_stream(run) == ledger.store.find_stream(run)
        ledger.write("run.recorded", run)

    assert ledger.expected_rows() == ledger.rows()


def test_server_is_stopped_while_it_writes(ledger: Ledger, postgres: Any, sql: "psycopg.Connection[Any]") -> None:  # noqa: ANN401 - a fixture's own class
    """It says that it ends the session, which does not say what became of the commit: the entry is sent again."""
    run = ledger.a_run()
    signed = ledger.sign("run.recorded", run)
    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (run,))
    append = Act(lambda: ledger.store.append([signed]))
    wait_for_waiting(postgres.url(sql.info.dbname), 1)
    with suppress(psycopg.Error):
        sql.close()
    postgres.stop(signal.SIGINT)
    postgres.start()

    assert "" == append.result()
    ledger.note(signed)
    assert ledger.expected_rows() == ledger.rows()


@pytest.mark.parity("append-is-durable-on-return")
def test_server_that_dies_has_what_was_appended(
    ledger: Ledger,
    open_ledger: Opener,
    postgres: Any,  # noqa: ANN401 - a fixture's own class
    sql: "psycopg.Connection[Any]",
) -> None:
    """Also where the database prefers to answer before it has written its log."""
    sql.execute(f"ALTER DATABASE {sql.info.dbname} SET synchronous_commit = off")
    sql.commit()
    other = open_ledger()
    signed = ledger.sign("run.started", ledger.new_id("run"))
    other.store.append([signed])
    postgres.stop(signal.SIGQUIT)
    with suppress(psycopg.Error):
        sql.close()
    postgres.start()

    assert signed == ledger.store.receipt(signed.stream, 1)


# The order of positions


@pytest.mark.parity("postgres-positions-have-no-gaps")
def test_positions_are_in_an_order_in_which_each_was_legal(
    ledger: Ledger, open_ledger: Opener, postgres_url: str, sql: "psycopg.Connection[Any]"
) -> None:
    """A transaction that began first and came last to what both change stands behind the other one.

    A settlement that is held up, an acceptance from before it, and then the settlement: by the numbers of their
    transactions the settlement would be the first, and the acceptance would hang from what is no longer the last.
    """
    root, holding = ledger.a_run(), ledger.a_run()
    handoff, other = ledger.an_offer(root), open_ledger()
    attempt, call = ledger.an_attempt(handoff), ledger.new_id("call")
    ledger.write("tool.requested", attempt, call=call)
    ledger.write("handoff.failed", attempt)
    ledger.write("handoff.retried", handoff)
    slow = [ledger.sign("run.recorded", holding), ledger.sign("tool.settled", handoff, run=attempt, call=call)]
    accepted = ledger.sign("handoff.accepted", ledger.new_id("run"), handoff=handoff)
    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (holding,))

    late = Act(lambda: ledger.store.append(slow))
    wait_for_waiting(postgres_url, 1)
    other.store.append([accepted])
    sql.rollback()

    assert "" == late.result()
    assert [accepted.digest, *(one.digest for one in slow)] == ledger.written()[-3:]
    positions, made, rows = ledger.fold()
    assert list(range(1, len(positions) + 1)) == positions
    assert made == rows


@pytest.mark.parity("revocation-decides-in-the-commit")
def test_revocation_waits_for_calls_under_way(
    ledger: Ledger, open_ledger: Opener, postgres_url: str, sql: "psycopg.Connection[Any]"
) -> None:
    """A call that has found its grant in force is written before the revocation, however long its commit takes."""
    run, other = ledger.a_run(), open_ledger()
    call = ledger.sign("tool.requested", run, call=ledger.new_id("call"), charges=(run,), request=("key", "call"))
    revoked = ledger.sign("grant.revoked", ledger.relay(), account=run)
    sql.execute(
        "INSERT INTO requests VALUES (%s, 'tool.requested', '', '', 1)", (call.receipt.request,)
    )  # the call waits for what becomes of this, after it has looked for revocations

    charged = Act(lambda: ledger.store.append([call]))
    wait_for_waiting(postgres_url, 1)
    revoking = Act(lambda: other.store.append([revoked]))
    wait_for_waiting(postgres_url, 2)
    sql.rollback()

    assert ("", "") == (charged.result(), revoking.result())
    assert [call.digest, revoked.digest] == ledger.written()[-2:]


def test_withdrawal_waits_for_a_takeover_under_way(
    ledger: Ledger, open_ledger: Opener, postgres_url: str, sql: "psycopg.Connection[Any]"
) -> None:
    """The epoch in which a run withdraws is looked up under a lock: what is being raised is not taken for the last."""
    run, other = ledger.a_run(), open_ledger()
    handoff = ledger.an_offer(run)
    withdrawn = ledger.sign("handoff.cancelled", handoff)
    takeover = ledger.sign("run.rekeyed", run, request=("key", "resume"))
    sql.execute("INSERT INTO requests VALUES (%s, 'run.rekeyed', '', '', 1)", (takeover.receipt.request,))

    rekeying = Act(lambda: ledger.store.append([takeover]))
    wait_for_waiting(postgres_url, 1)
    cancelling = Act(lambda: other.store.append([withdrawn]))
    wait_for_waiting(postgres_url, 2)
    sql.rollback()

    assert ("", "ledger.fenced") == (rekeying.result(), cancelling.result())
    _, made, rows = ledger.fold()
    assert made == rows


@pytest.mark.parity("postgres-positions-have-no-gaps", "verify-reads-one-view")
def test_view_begins_when_no_append_is_under_way(
    ledger: Ledger, open_ledger: Opener, postgres_url: str, sql: "psycopg.Connection[Any]"
) -> None:
    """What is being written could get a position before what is seen: the view waits for it, and has it."""
    held, other = ledger.a_run(), open_ledger()
    slow, fast = ledger.sign("run.recorded", held), ledger.sign("run.started", ledger.new_id("run"))
    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (held,))
    before = ledger.written()
    append = Act(lambda: ledger.store.append([slow]))
    wait_for_waiting(postgres_url, 1)
    other.store.append([fast])
    found: list[str] = []

    view = Act(lambda: found.extend(other.written()))
    wait_for_waiting(postgres_url, 2)
    sql.rollback()

    assert ("", "") == (append.result(), view.result())
    assert [*before, fast.digest, slow.digest] == found
    assert found == ledger.written()


@pytest.mark.parity("postgres-positions-have-no-gaps")
def test_transaction_of_something_else_holds_nothing_back(ledger: Ledger, sql: "psycopg.Connection[Any]") -> None:
    """Whatever else is open in the database: a receipt has its position as soon as it is written."""
    sql.execute("CREATE TABLE elsewhere (a int)")
    signed = ledger.write("run.started", ledger.new_id("run"))

    assert signed.digest == ledger.written()[-1]


@pytest.mark.slow
def test_two_that_wait_for_each_other(
    ledger: Ledger, open_ledger: Opener, postgres_url: str, sql: "psycopg.Connection[Any]"
) -> None:
    """The server ends one of them. Nothing of it was written, so it is sent again, and hears its own reason."""
    one, two, gate = (ledger.a_run() for _ in range(3))
    other = open_ledger()
    forth = [ledger.sign("run.recorded", run) for run in (one, gate, two)]
    back = [ledger.sign("run.recorded", run) for run in (two, gate, one)]
    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (gate,))
    acts = [Act(lambda: ledger.store.append(forth)), Act(lambda: other.store.append(back))]
    wait_for_waiting(postgres_url, 2)
    sql.rollback()

    assert ["", "ledger.stale_head"] == sorted(act.result() for act in acts)
    _, made, rows = ledger.fold()
    assert made == rows


def test_handoffs_are_locked_before_streams(ledger: Ledger, postgres_url: str, sql: "psycopg.Connection[Any]") -> None:
    """Also where an append to a stream came first: what ends an attempt locks its handoff, and then its stream."""
    root, gate = ledger.a_run(), ledger.a_run()
    handoff = ledger.an_offer(root)
    attempt, call = ledger.an_attempt(handoff), ledger.new_id("call")
    ledger.write("tool.requested", attempt, call=call)
    first, second = ledger.sign("run.recorded", gate), ledger.sign("run.recorded", attempt)
    settled = ledger.sign("tool.settled", handoff, run=attempt, call=call)
    sql.execute("SELECT FROM handoffs WHERE id = %s FOR UPDATE", (handoff,))
    with psycopg.connect(postgres_url) as holder:
        holder.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (gate,))
        acts = []
        for signed in (first, second, settled):  # the first is held up, and the others wait behind it
            acts.append(Act(lambda one=signed: ledger.store.append([one])))  # type: ignore[misc]
            FrozenClock().wait(lambda: False, 0.05)
    wait_for_waiting(postgres_url, 1)

    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE NOWAIT", (attempt,))
    sql.rollback()

    assert ["", "", ""] == [act.result() for act in acts]


# Interrupts


def interrupted(act: Callable[[], object], at: int) -> bool:
    """Do something, and raise `KeyboardInterrupt` at a point of store or driver; return whether it has that many."""
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        module = frame.f_globals.get("__name__", "")
        if event == "c_call" or not module.startswith(("batonpass.store", "psycopg.")) or "<" in frame.f_code.co_name:
            return
        count += 1
        if count == at:
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        with suppress(KeyboardInterrupt, BatonpassError):
            act()
    finally:
        sys.setprofile(None)
    return count >= at


@pytest.mark.slow
@pytest.mark.parity("postgres-interrupt-drops-the-connection")
def test_interrupt_at_any_point_of_a_read(ledger: Ledger) -> None:
    """The next read has its own answer, and not the one that was not read to its end."""
    one, two = ledger.a_run(), ledger.a_run()
    expected = ledger.tables.find_stream(two)
    ledger.store.find_stream(one)
    point, is_reached = 0, True
    while is_reached:
        point += 1

        is_reached = interrupted(lambda: ledger.store.find_stream(one), point)

        assert expected == ledger.store.find_stream(two), f"after an interrupt at point {point}"
    assert point > 40


@pytest.mark.slow
@pytest.mark.parity("postgres-interrupt-drops-the-connection", "sim-no-transaction-stays-open", "append-is-all-or-none")
def test_interrupt_at_any_point_of_an_append(ledger: Ledger, postgres_url: str) -> None:
    """The entry is there or it is not, no transaction stays open, and the next append is answered for itself."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
    point, is_reached, written = 0, True, 0
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        while is_reached:
            point += 1
            run = ledger.a_run()
            entry = [ledger.sign("run.recorded", run)]
            entry.append(ledger.sign("run.recorded", run, after=entry[0]))

            is_reached = interrupted(lambda entry=entry: ledger.store.append(entry), point)  # type: ignore[misc]

            assert [(0,)] == connection.execute(query).fetchall()
            found = [signed.digest for signed in ledger.store.receipts(run, after=1)]
            assert found in ([], [signed.digest for signed in entry])
            if found:
                ledger.note(*entry)
                written += 1
    assert point > 25
    assert 0 < written < point
    assert ledger.expected_rows() == ledger.rows()


@pytest.mark.parity("postgres-interrupt-drops-the-connection")
@pytest.mark.usefixtures("ctrl_c")
def test_interrupt_while_the_server_thinks(ledger: Ledger, sql: "psycopg.Connection[Any]", postgres_url: str) -> None:
    """A read that waits for the server ends at the interrupt; the next one is answered for itself."""
    one, two = ledger.a_run(), ledger.a_run()
    sql.execute("LOCK TABLE streams IN ACCESS EXCLUSIVE MODE")

    def interrupt() -> None:
        wait_for_waiting(postgres_url, 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    presser = threading.Thread(target=interrupt)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        ledger.store.find_stream(one)
    presser.join()
    sql.rollback()

    assert ledger.tables.find_stream(two) == ledger.store.find_stream(two)


def test_child_of_a_fork_ends_no_session(ledger: Ledger, sql: "psycopg.Connection[Any]") -> None:
    """What it closes would be its parent's."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() ORDER BY pid"
    before = sql.execute(query).fetchall()
    child = os.fork()
    if not child:
        with suppress(BaseException):
            ledger.store.close()
        os._exit(0)
    os.waitpid(child, 0)

    ledger.a_run()
    sql.rollback()  # a transaction looks at sessions once
    assert before == sql.execute(query).fetchall()


# The database


def test_two_that_open_an_empty_database(postgres_url: str) -> None:
    """The tables are made once."""
    opened = [Act(lambda: contextlib.closing(a_ledger(postgres_url).store).__enter__().close()) for _ in range(4)]

    assert [""] * 4 == [each.result() for each in opened]


def test_ledger_of_another_version_is_refused(
    ledger: Ledger, postgres_url: str, sql: "psycopg.Connection[Any]"
) -> None:
    """It is for the version that made it."""
    ledger.store.close()
    sql.execute("COMMENT ON TABLE receipts IS 'batonpass ledger 0'")
    sql.commit()

    with pytest.raises(StoreError) as refused:
        a_ledger(postgres_url)

    assert "store.not_a_ledger" == refused.value.code


def test_server_that_is_not_there(wire: Wire) -> None:
    """A sentence, and no trace of the driver."""
    wire.go_down()

    with pytest.raises(StoreError, match="cannot be opened"):
        a_ledger(wire.url)


def test_database_with_other_habits(open_ledger: Opener, postgres_url: str, sql: "psycopg.Connection[Any]") -> None:
    """Whatever isolation it prefers: of two writers one is told that the head has moved, and no other error."""
    sql.execute(f"ALTER DATABASE {sql.info.dbname} SET default_transaction_isolation = 'serializable'")
    sql.commit()
    ledger, other = open_ledger().found(), open_ledger()
    run = ledger.a_run()
    one, two = ledger.sign("run.recorded", run), ledger.sign("run.recorded", run)
    sql.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", (run,))
    acts = [Act(lambda: ledger.store.append([one])), Act(lambda: other.store.append([two]))]
    wait_for_waiting(postgres_url, 2)
    sql.rollback()

    assert ["", "ledger.stale_head"] == sorted(act.result() for act in acts)


def test_options_of_the_url_count(open_ledger: Opener, postgres_url: str, sql: "psycopg.Connection[Any]") -> None:
    """A ledger in a schema of its own is another ledger."""
    sql.execute("CREATE SCHEMA other")
    sql.commit()
    ledger, other = open_ledger().found(), open_ledger(f"{postgres_url}?options=-csearch_path%3Dother")

    assert None is other.store.genesis()
    other.found()
    run = ledger.a_run()
    assert None is other.store.find_stream(run)
    assert ([1, 2], [1]) == (ledger.fold()[0], other.fold()[0])
