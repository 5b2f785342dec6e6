"""Appends of many threads share commits: each is durable when it returns, and none suffers from another."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from batonpass.audit.verification.verify import verify_ledger
from batonpass.dispatch.worker import Worker
from batonpass.errors import StaleHeadError
from batonpass.model.base.ids import RunId
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.items import Decision
from batonpass.model.ledger.entry import Entry
from batonpass.model.ledger.run import Handoff
from batonpass.relay import Relay
from batonpass.store.postgres import append, group_commit
from batonpass.store.postgres.append import write_each, write_together
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import Scribe, a_scribe
from batonpass.testing.conformance.support import an_entry, head_of
from tests.integration.postgres.proxy import Lost, Proxy
from tests.integration.postgres.support import (
    a_transaction,
    database_of,
    digests_in,
    entries_after,
    eventually,
    waiting_backends,
)
from tests.integration.sqlite.commits import InterruptAt
from tests.postgres_server import Server

pytestmark = pytest.mark.postgres


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many shared each commit that was shared."""
    sizes: list[int] = []
    write_all = group_commit._write_all

    def counted(connection: psycopg.Connection, entries: Sequence[Entry]) -> list[bool]:
        sizes.append(len(entries))
        return write_all(connection, entries)

    monkeypatch.setattr(group_commit, "_write_all", counted)
    return sizes


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one be at the server at once, and the others wait until they are told: a test decides who shares."""
    monkeypatch.setattr(group_commit, "_AT_ONCE", 1)
    monkeypatch.setattr(group_commit, "_COMPANY_SECONDS", 60.0)


def appended(store: PostgresStore, pool: ThreadPoolExecutor, entries: Sequence[Entry]) -> list[Future[None]]:
    """Append each in a thread of its own, and return when all but the first wait for their turn."""
    futures = []
    for count, entry in enumerate(entries):
        futures.append(pool.submit(store.append, [entry]))
        eventually(lambda: store._group._under_way)
        eventually(lambda count=count: len(store._group._waiting) == count)  # type: ignore[misc]  # of this turn
    return futures


def outcome(future: Future[None]) -> type[BaseException] | None:
    error = future.exception()
    return None if error is None else type(error)


@pytest.mark.usefixtures("patient")
def test_who_waits_shares_a_commit_and_a_refusal_takes_nobody_along(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe, groups: list[int]
) -> None:
    """While one append is held up, others gather; then one writes for all, and only the stale one is refused."""
    leads = [scribe.start() for _ in range(4)]
    entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in leads]
    store.append([an_entry(scribe, leads[2], head_of(store, leads[2]))])
    with ThreadPoolExecutor(4) as pool, a_transaction(postgres, postgres_url) as other:
        other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [leads[0].run.id])
        futures = appended(store, pool, entries)
        other.commit()
        outcomes = [outcome(future) for future in futures]

    assert ([None, None, StaleHeadError, None], [3]) == (outcomes, groups)
    assert [2, 2, 2, 2] == [head_of(store, lead).seq for lead in leads]
    store.sequence()
    verify_ledger(store)


def test_nobody_waits_long_for_one_who_is_held_up(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe
) -> None:
    """Streams do not wait for each other: not for an append that is under way, and not for one in the same commit."""
    held, *free = [scribe.start() for _ in range(4)]
    entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in (held, *free)]
    with ThreadPoolExecutor(4) as pool, a_transaction(postgres, postgres_url) as other:
        other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [held.run.id])
        stuck, *others = [pool.submit(store.append, [entry]) for entry in entries]
        for future in others:
            future.result()
        assert not stuck.done()
        other.commit()
        stuck.result()

    assert [2, 2, 2, 2] == [head_of(store, lead).seq for lead in (held, *free)]


@pytest.mark.usefixtures("patient")
def test_one_in_a_group_that_would_wait_waits_by_itself(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe, groups: list[int]
) -> None:
    """The others of its group are durable before it is."""
    first, held, free = (scribe.start() for _ in range(3))
    entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in (first, held, free)]
    with ThreadPoolExecutor(3) as pool, a_transaction(postgres, postgres_url) as longer:
        longer.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [held.run.id])
        with a_transaction(postgres, postgres_url) as other:
            other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [first.run.id])
            futures = appended(store, pool, entries)
            other.commit()
            futures[0].result()
            futures[2].result()
            eventually(lambda: waiting_backends(postgres, postgres_url))
            assert not futures[1].done()
        longer.commit()
        futures[1].result()

    assert ([2], [2, 2, 2]) == (groups, [head_of(store, lead).seq for lead in (first, held, free)])


@pytest.mark.usefixtures("patient")
def test_one_statement_writes_for_all_unless_something_is_in_the_way(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one of them is refused, that statement writes nothing, and then each is written by itself."""
    outcomes: list[bool] = []

    def noted(connection: psycopg.Connection, entries: Sequence[Entry]) -> bool:
        outcomes.append(write_together(connection, entries))
        return outcomes[-1]

    monkeypatch.setattr(group_commit, "write_together", noted)
    for stale in (False, True):
        leads = [scribe.start() for _ in range(5)]
        entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in leads]
        if stale:
            store.append([an_entry(scribe, leads[3], head_of(store, leads[3]))])
        with ThreadPoolExecutor(5) as pool, a_transaction(postgres, postgres_url) as other:
            other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [leads[0].run.id])
            futures = appended(store, pool, entries)
            other.commit()
            refused = [outcome(future) for future in futures]
        assert [None, None, None, StaleHeadError if stale else None, None] == refused

    assert [True, False] == outcomes
    store.sequence()
    verify_ledger(store)


def test_a_whole_life_is_written_by_one_statement_for_each_act(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offers, acceptances and ends of both carriers: only what gives a lease back is left to the other way."""
    ways: list[tuple[str, bool]] = []
    write = append.write

    def as_group(connection: psycopg.Connection, entries: Sequence[Entry]) -> None:
        ways.append((entries[0].signed.receipt.kind, write_together(connection, entries)))
        if not ways[-1][1]:
            write(connection, entries)

    with Relay.open(postgres_url, home=tmp_path) as relay:
        relay.register("editor", lambda _: "edited")
        relay.start("Begin", by="user:ana").close()
        monkeypatch.setattr(append, "write", as_group)
        lead = relay.start("Fix it", by="user:ana")
        lead.record(Decision("round half-even", why="tax office"))
        with lead.hand_off("editor", "Edit a.py"):
            pass
        lead.hand_off("editor", "Edit b.py", carrier="worker")
        assert Worker(relay).work_one()
        again = lead.hand_off("editor", "Edit c.py", carrier="worker")
        lease = relay.claim(holder="here", lease_for=timedelta(minutes=1))
        assert lease is not None
        relay.handoff(lease).decline("not mine", lease=lease)
        states = [again.state(), *(handoff.state for handoff in lead_handoffs(relay, lead.id))]
        lead.close()
        relay.store.sequence()
        verify_ledger(relay.store)
        with relay.store.view() as view:
            left = list(view.find_leases())

    assert [State.DECLINED, State.DECLINED, State.COMPLETED, State.COMPLETED] == states
    assert ([("handoff.declined", False)], []) == ([way for way in ways if not way[1]], left)


def lead_handoffs(relay: Relay, lead: RunId) -> list[Handoff]:
    with relay.store.view() as view:
        return list(view.find_handoffs(parent=lead))


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
def test_nothing_is_written_with_a_key_that_is_being_revoked(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe, *, together: bool
) -> None:
    """Whoever takes a key's right away keeps all out until the commit, and after it nothing of that key is written."""
    leads = [scribe.start() for _ in range(3)]
    entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in leads]

    def writes_any() -> bool:
        connections = store._connections
        with connections.writer(connections.patience()) as connection:
            return write_together(connection, entries) if together else any(write_each(connection, entries))

    with a_transaction(postgres, postgres_url) as other:
        other.execute("LOCK TABLE receipts IN SHARE ROW EXCLUSIVE MODE")
        other.execute("UPDATE keys SET status = 'revoked' WHERE role = 'relay'")
        assert not writes_any()
        other.commit()

    assert not writes_any()
    assert [1, 1, 1] == [head_of(store, lead).seq for lead in leads]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("lost", [Lost.REPLY, Lost.REQUEST], ids=["the reply", "the request"])
def test_a_group_whose_wire_breaks_is_asked_for_one_by_one(
    postgres: Server, postgres_url: str, lost: Lost, groups: list[int]
) -> None:
    """Whether the server has committed or never heard of it: each is there once."""
    with Proxy(postgres.port) as proxy:
        url = postgres.url(database_of(postgres_url), port=proxy.port)
        with closing(PostgresStore(url, connections=2)) as store, ThreadPoolExecutor(3) as pool:
            scribe = a_scribe(store)
            leads = [scribe.start() for _ in range(3)]
            entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in leads]
            leading = store._group._lead

            def break_then_lead(members: Sequence[group_commit._Member]) -> None:
                if len(members) > 1:
                    proxy.lose(lost)
                leading(members)

            store._group._lead = break_then_lead  # type: ignore[method-assign]  # to break the wire in time
            with a_transaction(postgres, postgres_url) as other:
                other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [leads[0].run.id])
                futures = appended(store, pool, entries)
                other.commit()
                for future in futures:
                    future.result()
            heads = [digests_in(store, lead)[1:] for lead in leads]

    assert ([2], [[entry.signed.digest] for entry in entries]) == (groups, heads)


def test_many_threads_lose_and_double_nothing(store: PostgresStore, scribe: Scribe, groups: list[int]) -> None:
    """Sixteen threads append to runs of their own: all that was acknowledged is there, in order, and some shared."""
    leads = [scribe.start() for _ in range(16)]
    chains = [entries_after(scribe, lead, head_of(store, lead), 12) for lead in leads]
    together = threading.Barrier(len(leads))

    def write(chain: Sequence[Entry]) -> None:
        together.wait()
        for entry in chain:
            store.append([entry])

    acts: list[Callable[[], None]] = [lambda chain=chain: write(chain) for chain in chains]  # type: ignore[misc]  # bound
    with ThreadPoolExecutor(len(leads)) as pool:
        for future in [pool.submit(act) for act in acts]:
            future.result()

    assert [[entry.signed.digest for entry in chain] for chain in chains] == [
        digests_in(store, lead)[1:] for lead in leads
    ]
    assert groups
    store.sequence()
    verify_ledger(store)


@pytest.mark.usefixtures("patient")
def test_who_is_interrupted_while_it_waits_holds_up_nobody(
    postgres: Server, postgres_url: str, store: PostgresStore, scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it was just chosen to lead: the next who waits leads instead of it."""
    leads = [scribe.start() for _ in range(3)]
    entries = [an_entry(scribe, lead, head_of(store, lead)) for lead in leads]
    gather = store._group._gather

    def interrupted(leader: group_commit._Member) -> list[group_commit._Member]:
        if leader.entry is entries[1]:
            raise KeyboardInterrupt
        return gather(leader)

    monkeypatch.setattr(store._group, "_gather", interrupted)
    with ThreadPoolExecutor(3) as pool, a_transaction(postgres, postgres_url) as other:
        other.execute("SELECT FROM streams WHERE id = %s FOR UPDATE", [leads[0].run.id])
        futures = appended(store, pool, entries)
        other.commit()
        outcomes = [outcome(future) for future in futures]

    assert [None, KeyboardInterrupt, None] == outcomes
    assert (0, [2, 1, 2]) == (store._group._under_way, [head_of(store, lead).seq for lead in leads])


@pytest.mark.slow
def test_an_interrupt_anywhere_hangs_none_of_those_it_writes_for(
    store: PostgresStore, scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt whoever writes for all, at every point where a signal can strike: the others are written once."""
    monkeypatch.setattr(group_commit, "_COMPANY_SECONDS", 0.02)
    leads = [scribe.start() for _ in range(3)]
    numbers = range(40)
    troubles = {}
    for number in numbers:
        before = [head_of(store, lead) for lead in leads]
        entries = [an_entry(scribe, *known) for known in zip(leads, before, strict=True)]
        interrupt = InterruptAt(group_commit.__file__, number)
        store._group._under_way = group_commit._AT_ONCE  # so that all of them wait, and the first leads
        with ThreadPoolExecutor(3) as pool:
            first = pool.submit(_interrupted, store, entries[0], interrupt)
            others = [pool.submit(store.append, [entry]) for entry in entries[1:]]
            told = [outcome(future) for future in (first, *others)]
        grown = [head_of(store, lead).seq - known.seq for lead, known in zip(leads[1:], before[1:], strict=True)]
        if ([None, None], [1, 1]) != (told[1:], grown):
            troubles[f"{number} {interrupt.struck}"] = (told, grown)
        if not interrupt.struck:
            break

    assert {} == troubles
    assert 10 < number < numbers[-1]


def _interrupted(store: PostgresStore, entry: Entry, interrupt: InterruptAt) -> None:
    with suppress(KeyboardInterrupt), interrupt:
        store.append([entry])
