"""Opening a database: what is there, who may come in, and what is said if that is not so."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import pytest

from batonpass.dispatch.worker import Worker
from batonpass.errors import (
    GrantError,
    InvalidValueError,
    NewerSchemaError,
    NoLedgerError,
    NotALedgerError,
    SchemaError,
    StoreError,
    StoreReadOnlyError,
    StoreRefusedError,
    StoreShutError,
    StoreUnavailableError,
)
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from batonpass.store.migrate import AppliedMigration, Migration
from batonpass.store.postgres import schema
from batonpass.store.postgres.address import parse_address
from batonpass.store.postgres.connections import Connection
from batonpass.store.postgres.store import PostgresStore
from batonpass.testing import a_scribe
from batonpass.testing.conformance.support import all_receipts
from tests.integration.postgres.proxy import Proxy
from tests.integration.postgres.support import database_of, eventually
from tests.postgres_server import PASSWORD, TEMPLATE, Server

pytestmark = pytest.mark.postgres

_READ_ONLY: Final = "-c%20default_transaction_read_only%3Don"


@contextmanager
def opened(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


def test_a_url_opens_the_store(postgres_url: str) -> None:
    """`open_store` knows what postgresql:// means, and nobody sees the password."""
    store = open_store(postgres_url)
    store.close()

    assert postgres_url.replace(":open%20sesame", "") == store.url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("postgresql://a:b@h1,h2:5/d", "postgresql://a@h1,h2:5/d", id="of several hosts"),
        pytest.param("postgresql:///d?user=a&password=b", "postgresql:///d?user=a", id="as a setting"),
        pytest.param("postgresql://h/d?sslmode=require", "postgresql://h/d?sslmode=require", id="that is not there"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    """Whatever form it has, the password is left out of what people see."""
    assert shown == parse_address(url).shown


def test_an_address_that_cannot_be_read_is_not_repeated() -> None:
    """A malformed URL may hold a password, so the error does not quote it."""
    with pytest.raises(InvalidValueError) as refused:
        PostgresStore("postgresql://ana:se%zzcret@host/db")

    assert "cret" not in str(refused.value)


def test_a_wrong_password_is_refused(postgres: Server) -> None:
    """The server is there and does not let us in; the sentence says so, without the password."""
    with pytest.raises(StoreRefusedError) as refused:
        PostgresStore(postgres.url(TEMPLATE, password="guess"))

    assert (
        f"postgresql://relay@127.0.0.1:{postgres.port}/{TEMPLATE} refuses the connection: "
        'password authentication failed for user "relay"; check user, password and database' == str(refused.value)
    )


def test_a_missing_password_is_refused(postgres: Server) -> None:
    """Not to give a password where one is needed is as wrong as to give a wrong one."""
    with pytest.raises(StoreRefusedError, match="no password supplied"):
        PostgresStore(f"postgresql://relay@127.0.0.1:{postgres.port}/{TEMPLATE}")


def test_an_unknown_user_is_refused(postgres: Server) -> None:
    """A user whom the server does not know gets no further than one with a wrong password."""
    with pytest.raises(StoreRefusedError, match="refuses the connection"):
        PostgresStore(f"postgresql://nobody:x@127.0.0.1:{postgres.port}/{TEMPLATE}")


def test_a_database_that_is_missing_is_named(postgres: Server) -> None:
    """We do not make databases, so one that is not there is named."""
    with pytest.raises(StoreRefusedError, match='database "nowhere" does not exist'):
        PostgresStore(postgres.url("nowhere"))


def test_a_server_that_is_down_is_said_to_be(postgres: Server) -> None:
    """Nobody listens at the address for as long as we wait: one sentence says so."""
    with pytest.raises(StoreUnavailableError, match="cannot be reached: Connection refused"):
        PostgresStore(postgres.url(TEMPLATE, port=1), wait_for=timedelta(milliseconds=10))


def test_opening_waits_for_a_server_that_is_still_starting(postgres_url: str) -> None:
    """A program that starts together with its server opens the ledger as soon as the server answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    server = urlsplit(postgres_url)
    url = urlunsplit(server._replace(netloc=server.netloc.replace(f":{server.port}", f":{port}")))
    proxies: list[Proxy] = []
    threading.Timer(0.3, lambda: proxies.append(Proxy(server.port or 0, at=port))).start()
    with opened(url) as store:
        assert not store.founded()
    proxies[0].cut()


def test_a_url_may_ask_for_a_session_that_can_write(postgres_url: str) -> None:
    """`target_session_attrs=read-write` names the primary, also for our sessions that only read."""
    with opened(f"{postgres_url}?target_session_attrs=read-write") as store:
        a_scribe(store).start()
        with store.view() as view:
            assert 1 == len(list(view.find_runs()))


def test_a_worker_lives_through_a_primary_that_takes_no_writes(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    """After a failover, or while the server is being mended, a worker waits and says so; then it goes on."""
    database, troubles, stop = database_of(postgres_url), list[StoreError | GrantError](), threading.Event()

    def read_only(setting: str) -> None:
        postgres.execute(f'ALTER DATABASE "{database}" {setting}')
        postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", database)

    with Relay.open(postgres_url, home=tmp_path) as relay:
        relay.register("editor", lambda run: run.task)
        offered = relay.start("Edit it", by="user:ana").hand_off("editor", "the file", carrier="worker")
        read_only("SET default_transaction_read_only = on")
        worker = Worker(relay, troubled=troubles.append)
        thread = threading.Thread(target=worker.run_until, args=(stop,), kwargs={"poll": timedelta(milliseconds=20)})
        thread.start()
        eventually(lambda: any(isinstance(trouble, StoreReadOnlyError) for trouble in troubles))
        read_only("RESET default_transaction_read_only")
        eventually(lambda: offered.result().delivered)
        stop.set()
        thread.join(30)


def test_an_empty_database_becomes_a_store(empty_postgres_url: str) -> None:
    """The first to open a database makes the tables, and they are known to be made."""
    with opened(empty_postgres_url) as store:
        migrations = store.migrations()

    expected = [(step.version, step.name) for step in schema.MIGRATIONS]
    assert expected == [(applied.version, applied.name) for applied in migrations]
    for applied in migrations:
        assert applied.applied_at is not None
        assert timedelta(0) <= datetime.now(UTC) - applied.applied_at < timedelta(minutes=5)


def test_processes_that_open_an_empty_database_at_once_all_succeed(empty_postgres_url: str) -> None:
    """One of them makes the tables, the others wait for it, and one of them founds the ledger."""
    program = (
        "import sys\n"
        "from batonpass.store.postgres.store import PostgresStore\n"
        "from batonpass.testing import a_scribe\n"
        "sys.stdin.readline()\n"
        "store = PostgresStore(sys.argv[1])\n"
        "a_scribe(store)\n"
        "store.close()\n"
    )
    command = [sys.executable, "-c", program, empty_postgres_url]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.close()

    assert [0] * 4 == [process.wait() for process in processes]
    with opened(empty_postgres_url) as store:
        assert 1 == len(all_receipts(store))


def test_a_newer_schema_is_refused(postgres: Server, postgres_url: str) -> None:
    """A store that a newer Batonpass has migrated is not touched by an older one."""
    database, known = database_of(postgres_url), len(schema.MIGRATIONS)
    postgres.execute("INSERT INTO schema_migrations (version, name) VALUES (%s, 'later')", known + 1, database=database)

    with pytest.raises(
        NewerSchemaError, match=f"has schema {known + 1} and this program knows up to {known}; upgrade batonpass"
    ):
        PostgresStore(postgres_url)


def test_an_older_schema_is_migrated_on_request(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store from before is opened, refuses use until it is migrated, and says how; then it works."""
    with opened(postgres_url) as store:
        before = a_scribe(store).start()
    known = len(schema.MIGRATIONS)
    later = Migration(known + 1, "later", "CREATE TABLE later (id text)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, later))

    with opened(postgres_url) as store:
        with pytest.raises(SchemaError, match=f"has schema {known} and this program needs {known + 1}; run `batonpass"):
            store.founded()
        assert AppliedMigration(known + 1, "later", None) == store.migrations()[-1]
        store.migrate()
        with store.view() as view:
            assert before.run == view.get_run(before.run.id)
        assert None is not store.migrations()[-1].applied_at


def test_tables_of_another_program_are_left_alone(postgres: Server, empty_postgres_url: str) -> None:
    """A database with a table named like one of ours, which we did not make, is not a ledger."""
    postgres.execute("CREATE TABLE receipts (till integer)", database=database_of(empty_postgres_url))

    with pytest.raises(NotALedgerError, match="has tables of another program"):
        PostgresStore(empty_postgres_url)


def test_migrations_of_another_program_are_left_alone(postgres: Server, empty_postgres_url: str) -> None:
    """Other programs have a table schema_migrations, too; it does not look like ours."""
    database = database_of(empty_postgres_url)
    postgres.execute("CREATE TABLE schema_migrations (version text)", database=database)
    postgres.execute("GRANT ALL ON schema_migrations TO relay", database=database)

    with pytest.raises(NotALedgerError, match="is another program's database"):
        PostgresStore(empty_postgres_url)


def test_a_user_who_may_not_make_tables_is_told(postgres: Server, empty_postgres_url: str) -> None:
    """Without the right to create, an empty database cannot become a store."""
    postgres.execute(f"ALTER DATABASE {database_of(empty_postgres_url)} OWNER TO postgres")

    with pytest.raises(StoreRefusedError, match="does not permit this to its user: permission denied"):
        PostgresStore(empty_postgres_url)


def test_an_empty_database_that_is_read_only_cannot_become_a_store(postgres: Server, empty_postgres_url: str) -> None:
    """On a standby nothing can be made."""
    with pytest.raises(StoreReadOnlyError, match="takes no writes"):
        PostgresStore(postgres.url(database_of(empty_postgres_url), options=_READ_ONLY))


def test_a_read_only_store_can_be_read(postgres: Server, postgres_url: str) -> None:
    """On a standby appends are refused with a sentence, and views work."""
    with opened(postgres_url) as store:
        scribe = a_scribe(store)
        lead = scribe.start()

    with opened(postgres.url(database_of(postgres_url), options=_READ_ONLY)) as standby:
        with standby.view() as view:
            assert lead.run == view.get_run(lead.run.id)
        with pytest.raises(StoreReadOnlyError, match="takes no writes"):
            standby.sequence()


def test_a_closed_store_refuses(postgres_url: str) -> None:
    """Closing twice is harmless; using it afterwards is an error that says so."""
    store = PostgresStore(postgres_url)
    store.close()
    store.close()

    with pytest.raises(StoreShutError):
        store.founded()
    with pytest.raises(StoreShutError), store.view():
        pass


def test_a_store_that_is_closed_by_another_thread_says_so(postgres_url: str) -> None:
    """Whoever waits for a connection when the store is closed hears why there is none."""
    with opened(postgres_url) as store:
        store._connections.close()
        with pytest.raises(StoreShutError):
            store.founded()


def test_several_ledgers_share_a_database(postgres: Server, empty_postgres_url: str) -> None:
    """Each has a schema of its own, which stands in its URL, and knows nothing of the others."""
    database = database_of(empty_postgres_url)
    for team in ("red", "blue"):
        postgres.execute(f"CREATE SCHEMA {team} AUTHORIZATION relay", database=database)
        with opened(postgres.url(database, options=f"-c%20search_path%3D{team}")) as store:
            a_scribe(store).start()
            store.sequence()
            with store.view() as view:
                assert 2 == view.last_position()


def test_a_session_is_set_up_for_its_task(postgres_url: str) -> None:
    """Every connection is recognisable, and one that writes cannot keep others waiting for long."""
    names = ("application_name", "idle_in_transaction_session_timeout", "statement_timeout", "synchronous_commit")
    with opened(postgres_url) as store:
        connections = store._connections

        def shown(connection: Connection) -> list[object]:
            return [connection.execute(f"SHOW {name}").fetchone() for name in names]

        with connections.writer(connections.patience()) as writer, connections.snapshot() as reader:
            writing, (*reading, _) = shown(writer), reader.run(shown)

    assert [("batonpass",), ("5s",), ("30s",), ("on",)] == writing
    assert [("batonpass",), ("10min",), ("0",)] == reading
    assert PASSWORD not in store.url


def test_reading_makes_no_tables(empty_postgres_url: str, postgres: Server) -> None:
    """Whoever names a wrong database is told so, and leaves it as it was."""
    with pytest.raises(NoLedgerError, match="there is no ledger at postgresql://"):
        open_store(empty_postgres_url, create=False)
    tables = postgres.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database=database_of(empty_postgres_url)
    )

    assert [(0,)] == tables
