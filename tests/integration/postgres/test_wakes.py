"""Workers that wait are told by the server: one of them, when something is there, and not before."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from batonpass.dispatch import worker as dispatch
from batonpass.dispatch.worker import Worker
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import AgentId
from batonpass.model.base.lifecycle import State
from batonpass.relay import Relay
from batonpass.store.port import Wake
from batonpass.store.postgres import notifications
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe
from batonpass.testing.conformance.leases import waiting as offered
from tests.integration.postgres.support import database_of, eventually, meanwhile
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres

EDITOR: Final = AgentId("editor")
AN_HOUR: Final = timedelta(hours=1)

# It never looks by itself: whatever it works on, it was told of.
WORKS_WHEN_TOLD: Final = """
import sys, threading
from datetime import timedelta
from pathlib import Path
from batonpass.dispatch import worker
from batonpass.relay import Relay
from batonpass.store.postgres import notifications
worker.TOLD_POLL = timedelta(hours=1)
notifications._SECOND_LOOK_SECONDS = 3600.0
stop = threading.Event()
with Relay.open(sys.argv[1], home=Path(sys.argv[2])) as relay:
    relay.register("editor", lambda run: "edited by " + sys.argv[3])
    worker.Worker(relay, finished=lambda _: stop.set()).run_until(stop)
"""


@pytest.fixture
def relay(postgres_url: str, tmp_path: Path) -> Iterator[Relay]:
    """Return a relay whose keys other processes share."""
    with Relay.open(postgres_url, home=tmp_path) as relay:
        yield relay


@pytest.fixture
def never_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever waits learn of nothing by looking."""
    monkeypatch.setattr(notifications, "_SECOND_LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(dispatch, "TOLD_POLL", AN_HOUR)


def waiting_workers(postgres: Server, url: str) -> int:
    ((count,),) = postgres.execute("SELECT count(*) FROM waiting_workers", database=database_of(url))
    return int(count)


@contextmanager
def one_who_waits(store: PostgresStore, stop: threading.Event, agent: AgentId = EDITOR) -> Iterator[Future[object]]:
    with meanwhile(lambda: store.await_work([agent], at_most=AN_HOUR, stop=stop)) as told:
        try:
            yield told
        finally:
            stop.set()


def test_workers_in_other_processes_are_told(postgres: Server, postgres_url: str, relay: Relay, tmp_path: Path) -> None:
    """Two processes wait and ask nobody; each gets one of two tasks, because whoever was told no longer waits."""
    lead = relay.start("Edit", by="user:ana")
    command = [sys.executable, "-c", WORKS_WHEN_TOLD, postgres_url, str(tmp_path)]
    processes = [subprocess.Popen([*command, name]) for name in ("one", "two")]
    eventually(lambda: 2 == waiting_workers(postgres, postgres_url))
    handoffs = [lead.hand_off("editor", task, carrier="worker") for task in ("Edit a.py", "Edit b.py")]

    assert [0, 0] == [process.wait() for process in processes]
    assert {"edited by one", "edited by two"} == {handoff.result().value for handoff in handoffs}


@pytest.mark.usefixtures("never_by_itself")
def test_one_worker_is_told_of_one_handoff(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe
) -> None:
    """The others are left to wait: they would find it taken."""
    stop = threading.Event()
    with ExitStack() as stack:
        told = [stack.enter_context(one_who_waits(store, stop)) for _ in range(3)]
        eventually(lambda: 3 == waiting_workers(postgres, postgres_url))
        offered(scribe)
        eventually(lambda: any(one.done() for one in told))

        assert 2 == waiting_workers(postgres, postgres_url)
        assert [Wake.WORK] == [one.result() for one in told if one.done()]


@pytest.mark.usefixtures("never_by_itself")
def test_nobody_is_told_of_what_is_for_others(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe
) -> None:
    """A worker is told only of what waits for an agent that it serves."""
    stop = threading.Event()
    with one_who_waits(store, stop, AgentId("translator")) as told:
        eventually(lambda: waiting_workers(postgres, postgres_url))
        offered(scribe)

        assert 1 == waiting_workers(postgres, postgres_url)
    assert Wake.NOTHING is told.result()


@pytest.mark.usefixtures("never_by_itself")
def test_what_is_given_back_is_told(postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe) -> None:
    """A lease that somebody gives back wakes a worker, as an offer does."""
    offered(scribe)
    lease = store.claim(holder="hesitant", lease_for=AN_HOUR)
    assert lease is not None
    stop = threading.Event()
    with one_who_waits(store, stop) as told:
        eventually(lambda: waiting_workers(postgres, postgres_url))
        store.release(lease)

        assert Wake.WORK is told.result()


def test_what_is_there_already_is_not_waited_for(store: PostgresStore, scribe: Scribe) -> None:
    """Whoever begins to wait is told of what was offered before."""
    offered(scribe)

    assert Wake.WORK is store.await_work([EDITOR], at_most=AN_HOUR, stop=threading.Event())


def test_who_stops_passes_on_what_it_was_told(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe
) -> None:
    """A worker that is told in the moment in which it stops does not keep it from the others."""
    leaving, staying = (notifications._Listener(store._connections.new()) for _ in range(2))
    for listener in (leaving, staying):
        listener.register([EDITOR], 3600)
        offered(scribe) if listener is leaving else None
    assert 1 == waiting_workers(postgres, postgres_url)
    leaving.stop([EDITOR])
    told = list(staying._connection.notifies(timeout=10, stop_after=1))
    leaving.close()
    staying.close()

    assert (1, 0) == (len(told), waiting_workers(postgres, postgres_url))


def test_the_dead_are_told_nothing(postgres: Server, postgres_url: str, scribe: Scribe) -> None:
    """Who said that it waits and was not heard of since is passed over."""
    dead = "INSERT INTO waiting_workers VALUES ('batonpass_dead', '{editor}', batonpass_now() - 1)"
    postgres.execute(dead, database=database_of(postgres_url))
    offered(scribe)

    assert 1 == waiting_workers(postgres, postgres_url)


@pytest.mark.usefixtures("never_by_itself")
def test_a_lease_that_runs_out_is_noticed(relay: Relay) -> None:
    """Nobody tells that a worker died; whoever waits knows when its lease ends, and goes on with its handoff."""
    stop = threading.Event()

    def edit(_: LiveRun) -> str:
        return "edited"

    relay.register("editor", edit)
    handoff = relay.start("Edit", by="user:ana").hand_off("editor", "Edit a.py", carrier="worker")
    assert relay.claim(holder="dead", lease_for=timedelta(seconds=0.5)) is not None
    Worker(relay, finished=lambda _: stop.set()).run_until(stop)

    assert (State.COMPLETED, "edited") == (handoff.state(), handoff.result().value)


def test_a_server_that_is_away_is_not_waited_for(postgres: Server, postgres_url: str, store: PostgresStore) -> None:
    """Nobody tells anything then: the worker looks again after a pause, as with any other store."""
    stop = threading.Event()
    with one_who_waits(store, stop) as told:
        eventually(lambda: waiting_workers(postgres, postgres_url))
        postgres.stop()
        try:
            assert Wake.UNTOLD is told.result()
            assert Wake.UNTOLD is store.await_work([EDITOR], at_most=AN_HOUR, stop=stop)
        finally:
            postgres.start()


def test_a_closed_store_leaves_nobody_connected(postgres: Server, postgres_url: str) -> None:
    """Connections that only listen are closed with the store."""
    store = PostgresStore(postgres_url)
    store.await_work([EDITOR], at_most=timedelta(0), stop=threading.Event())
    store.close()
    sessions: Callable[[], object] = lambda: postgres.execute(  # noqa: E731 - it is asked again and again
        "SELECT pid FROM pg_stat_activity WHERE datname = %s AND application_name = 'batonpass'",
        database_of(postgres_url),
    )

    eventually(lambda: not sessions())
