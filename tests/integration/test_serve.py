"""A real server in a process of its own: it says where it is, answers, drains and ends."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.relay import Relay
from tests.integration.server_process import PATIENCE, PROGRAM, Served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Start a server in an empty directory."""
    server = Served(tmp_path)
    yield server
    server.kill()


@pytest.mark.slow
def test_it_says_where_it_is_answers_and_ends(served: Served, tmp_path: Path) -> None:
    """A token that was added while it runs lets in at once, and the one-time link is printed."""
    with Relay.open(tmp_path / ".batonpass" / "ledger.db") as relay:
        token = relay.admin.add_token("user:ana", "auditor", by="user:ana", lasts=timedelta(hours=1)).text
    status, ledger = served.get("/v1/ledger", token)
    without, _ = served.get("/v1/ledger", None)
    code, said = served.end()

    assert (200, 401, 0) == (status, without, code)
    assert ledger["id"].startswith("ledger_")
    assert ("/enter#" in said, said.rstrip().endswith("stopped")) == (True, True)
    assert token.partition(".")[2] not in said


@pytest.mark.slow
def test_a_taken_port_gets_one_sentence(tmp_path: Path) -> None:
    """It names the port and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [PROGRAM, "serve", "--port", str(port)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    assert (1, 1) == (done.returncode, done.stderr.count("\n"))
    assert f"port {port} is taken" in done.stderr


@pytest.mark.slow
def test_clients_that_do_not_read_block_nobody_and_do_not_keep_it_from_ending(served: Served, tmp_path: Path) -> None:
    """Streams that nobody reads, and half a request that never comes: others are served, and SIGTERM ends it."""
    with Relay.open(tmp_path / ".batonpass" / "ledger.db") as relay:
        token = relay.admin.add_token("user:ana", "auditor", by="user:ana", lasts=timedelta(hours=1)).text
        for _ in range(20):
            relay.start("Words " * 1000, by="user:ana").close()
    idle = []
    for _ in range(12):
        stream = socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)
        said = f"GET /v1/events?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
        stream.sendall(said.encode())
        half = socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE)
        half.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        idle += [stream, half]
    answered = [served.get("/v1/receipts", token)[0] for _ in range(5)]
    began = time.monotonic()
    code, _ = served.end()
    for one in idle:
        one.close()

    assert ([200] * 5, 0) == (answered, code)
    assert time.monotonic() - began < PATIENCE / 2


# Its metrics are never up to date, as in the first minutes with a large ledger.
STILL_COUNTING = """
import sys
from pathlib import Path
from batonpass.cli.main import main
from batonpass.telemetry.metric_board import MetricBoard

def count(board):
    Path("counting").touch()
    return True

MetricBoard._catch_up = count
sys.argv = ["batonpass", "serve", "--port", "0", "--no-link", "--address-file", "address"]
main()
"""


@pytest.mark.slow
def test_a_server_that_is_still_counting_receipts_ends(tmp_path: Path) -> None:
    """SIGTERM does not wait until the metrics of a large ledger are up to date."""
    with Relay.open(tmp_path / ".batonpass" / "ledger.db") as relay:
        relay.start("Work", by="user:ana").close()
    command = [sys.executable, "-c", STILL_COUNTING]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + PATIENCE
        while not all((tmp_path / name).exists() for name in ("address", "counting")):
            assert (None, True) == (process.poll(), time.monotonic() < until)
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        try:
            _, said = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()

    assert (0, True) == (process.returncode, said.rstrip().endswith("stopped"))


SLOW = """
import sys
from batonpass.server.listener import ServerPlace, bound, listen

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            said = await receive()
            await send({"type": said["type"] + ".complete"})
            if said["type"] == "lifespan.shutdown":
                return
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})

place = ServerPlace(port=0)
with bound(place) as (opened, address):
    listen(app, place, opened, ready=lambda: print(address, flush=True), request_seconds=1.5)
"""


@pytest.mark.slow
def test_a_client_that_never_finishes_its_request_is_let_go(tmp_path: Path) -> None:
    """Half a head, half a body, or half of a second request: each is cut off; one that is whole is answered."""
    halves = [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHos",
    ]
    with subprocess.Popen([sys.executable, "-c", SLOW], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        connections = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) for _ in halves]
        for connection, half in zip(connections, halves, strict=True):
            connection.sendall(half)
        told = [_all_of(connection) for connection in connections]
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)

    assert [b"", b"", b"", True] == [*told[:3], told[3].startswith(b"HTTP/1.1 200") and told[3].endswith(b"hi")]
    assert 0 == code


def _all_of(connection: socket.socket) -> bytes:
    """Return everything until the other side lets go."""
    found = b""
    with connection:
        while part := connection.recv(65536):
            found += part
    return found
