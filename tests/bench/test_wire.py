"""What is counted between a client and a PostgreSQL server, from the bytes alone."""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from bench.wire import Wire

STARTUP = struct.pack("!ii", 8, 196608)
ASKS_FOR_TLS = struct.pack("!ii", 8, 80877103)


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", 4 + len(body)) + body


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Stand before a server that answers one byte whenever it was told something."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            server, _ = listener.accept()
            with server:
                while server.recv(1 << 16):
                    server.sendall(b".")

        serving = threading.Thread(target=answer)
        serving.start()
        with Wire(f"postgresql://postgres@127.0.0.1:{listener.getsockname()[1]}/postgres") as standing:
            yield standing
        serving.join()


@pytest.fixture
def client(wire: Wire) -> Iterator[socket.socket]:
    port = int(wire.url.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        yield connection


def say(client: socket.socket, *parts: bytes) -> None:
    for part in parts:
        client.sendall(part)
    client.recv(1)


def test_queries_and_executions_are_statements(wire: Wire, client: socket.socket) -> None:
    """A simple query is one statement, and so is each execution of a prepared one; parsing and binding are none."""
    say(client, STARTUP)
    say(client, message(b"Q", b"BEGIN\0"))
    say(client, b"".join([message(b"P"), message(b"B"), message(b"E"), message(b"B"), message(b"E"), message(b"S")]))

    assert 3 == wire.statements


def test_what_is_sent_before_an_answer_is_one_trip(wire: Wire, client: socket.socket) -> None:
    """Three statements in a pipeline are one round trip, three that wait for each other are three."""
    say(client, STARTUP)
    before = wire.trips
    say(client, message(b"Q", b"a\0") * 3)
    together = wire.trips - before
    for _ in range(3):
        say(client, message(b"Q", b"a\0"))

    assert (1, 4) == (together, wire.trips - before)


def test_a_client_may_ask_for_encryption_first(wire: Wire, client: socket.socket) -> None:
    """The request has no letter, nor has the message after it; what comes then is read as it is."""
    say(client, ASKS_FOR_TLS)
    say(client, STARTUP)
    say(client, message(b"Q", b"SELECT 1\0"))

    assert 1 == wire.statements


def test_a_message_may_come_in_pieces(wire: Wire, client: socket.socket) -> None:
    """What the network cuts in two is one message."""
    say(client, STARTUP)
    whole = message(b"Q", b"SELECT 1\0")
    say(client, whole[:3])
    say(client, whole[3:])

    assert 1 == wire.statements
