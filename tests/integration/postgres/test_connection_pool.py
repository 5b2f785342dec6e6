"""Connections are lent one at a time: the last one back goes out first, and none is lent that is of no use."""

import gc
import select
from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest

from batonpass.errors import StoreShutError, StoreUnavailableError
from batonpass.store.postgres import connection_pool
from batonpass.store.postgres.connection_pool import ConnectionPool
from batonpass.store.postgres.prepared_statements import PreparedStatement, ask

pytestmark = pytest.mark.postgres


@pytest.fixture
def pool(postgres_url: str) -> Iterator[ConnectionPool]:
    with ExitStack() as made:

        def connect() -> psycopg.Connection:
            return made.enter_context(psycopg.connect(postgres_url, autocommit=True))

        yield made.enter_context(closing(ConnectionPool(connect, 2)))


def taken(pool: ConnectionPool) -> psycopg.Connection:
    connection = pool.take(0)
    assert connection is not None
    return connection


def test_who_came_back_last_goes_out_first(pool: ConnectionPool) -> None:
    """One connection does the work that one can do; the other stays where it is."""
    first, second = taken(pool), taken(pool)
    pool.give(first)
    pool.give(second)

    for _ in range(3):
        assert second is taken(pool)
        pool.give(second)


def test_no_more_than_so_many_are_lent(pool: ConnectionPool) -> None:
    """Whoever comes when all are lent gets none, until one is back."""
    first = taken(pool)
    taken(pool)
    assert pool.take(0.01) is None

    pool.give(first)
    assert first is pool.take(0)


def test_one_that_nobody_knows_any_more_takes_no_place(postgres_url: str, request: pytest.FixtureRequest) -> None:
    """Ctrl-C may come between lending one and the note of who has it. Otherwise a few of them would use up the pool.

    At once, and not when the interpreter looks for circles: a process that waits for a connection makes nothing new.
    """
    pool = ConnectionPool(lambda: psycopg.connect(postgres_url, autocommit=True), 2)
    gc.disable()
    request.addfinalizer(gc.enable)

    def lose_five() -> None:
        for _ in range(5):
            ask(taken(pool), PreparedStatement("SELECT 1"))

    with pytest.warns(ResourceWarning, match="deleted while still open"):
        lose_five()

    with closing(taken(pool)):
        pool.close()


@pytest.mark.parametrize("spoil", ["close", "leave open"], ids=["closed", "in a transaction"])
def test_one_that_is_of_no_use_is_not_lent_again(pool: ConnectionPool, spoil: str) -> None:
    """In its place another one is made."""
    spoiled = taken(pool)
    if spoil == "close":
        spoiled.close()
    else:
        spoiled.execute("BEGIN")
    pool.give(spoiled)

    other = taken(pool)
    assert (False, True) == (other is spoiled, spoiled.closed)
    assert (1,) == other.execute("SELECT 1").fetchone()


def test_one_that_cannot_be_made_takes_nobody_s_place() -> None:
    """A server that is away is asked again each time."""

    def away() -> psycopg.Connection:
        raise StoreUnavailableError("away")

    with closing(ConnectionPool(away, 1)) as pool:
        for _ in range(3):
            with pytest.raises(StoreUnavailableError):
                pool.take(0)


def test_what_nobody_needs_is_closed(pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one at the bottom has been idle the longest."""
    first, second = taken(pool), taken(pool)
    pool.give(first)
    monkeypatch.setattr(connection_pool, "_IDLE_SECONDS", -1.0)
    pool.give(second)

    assert (True, False) == (first.closed, second.closed)


def test_a_closed_pool_lends_nothing_and_keeps_nothing(pool: ConnectionPool) -> None:
    """What is lent when it is closed is closed when it comes back."""
    lent, kept = taken(pool), taken(pool)
    pool.give(kept)
    pool.close()
    pool.give(lent)

    assert lent.closed
    assert kept.closed
    with pytest.raises(StoreShutError):
        pool.take(0)


def test_what_is_idle_and_quiet_goes_out_without_waiting(pool: ConnectionPool) -> None:
    """Who finds none of these asks for one in the usual way, which may take a while."""
    assert pool.take_quiet() is None
    first = taken(pool)
    pool.give(first)

    assert (first, None) == (pool.take_quiet(), pool.take_quiet())


def test_one_to_which_something_has_come_unasked_is_left_to_the_usual_way(
    pool: ConnectionPool, postgres_url: str
) -> None:
    """The server has ended it: there it is noticed, closed, and the server is waited for."""
    ended = taken(pool)
    pool.give(ended)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (ended.info.backend_pid,))
    select.select([ended.fileno()], [], [], 5)

    assert pool.take_quiet() is None
    assert ended is taken(pool)
    assert not pool.is_quiet(ended)
