"""What goes over the wire to PostgreSQL: statements and round trips, counted from between client and server."""

import selectors
import socket
import threading
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

_READ: Final = 1 << 16
_HEAD: Final = 4
# In place of a version: the client asks for encryption, or for Kerberos, before it says who it is.
_ASKS_FIRST: Final = frozenset({80877103, 80877104})
_STATEMENTS: Final = frozenset(b"QE")  # Query, Execute


@dataclass(slots=True, eq=False)
class _Talk:
    """One connection through us."""

    client: socket.socket
    server: socket.socket
    unread: bytearray = field(default_factory=bytearray)
    introduced: bool = False
    answered: bool = True


class Wire:
    """Passes on everything that clients and a server say, and counts. Drivers cannot hide from it what they do."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        host = f"{parts.username}@127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = urlunsplit(parts._replace(netloc=host))
        self.statements = 0
        self.trips = 0
        self._stop, self._stopping = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="wire")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.send(b".")
        self._thread.join()
        for each in (self._listener, self._stop, self._stopping):
            each.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._stopping, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._stopping:
                        _close_all(selector)
                        return
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    else:
                        self._pass_on(selector, key)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        client, _ = self._listener.accept()
        talk = _Talk(client, socket.create_connection(self._server))
        for end in (talk.client, talk.server):
            # Small messages must not wait for each other: nobody is to be slower for being watched.
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(end, selectors.EVENT_READ, talk)

    def _pass_on(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        talk: _Talk = key.data
        if talk.client.fileno() < 0:  # closed a moment ago, for its other end
            return
        by_client = key.fileobj is talk.client
        source, target = (talk.client, talk.server) if by_client else (talk.server, talk.client)
        try:
            data = source.recv(_READ)
            target.sendall(data)
        except OSError:
            data = b""
        if not data:
            for end in (talk.client, talk.server):
                selector.unregister(end)
                end.close()
        elif by_client:
            self._hear(talk, data)
        else:
            talk.answered = True

    def _hear(self, talk: _Talk, data: bytes) -> None:
        # What a client sends before the server has answered anything belongs to the same trip.
        self.trips += talk.answered
        talk.answered = False
        talk.unread += data
        while True:
            kind = 1 if talk.introduced else 0  # the first message has no letter that says what it is
            if len(talk.unread) < kind + _HEAD:
                return
            size = kind + int.from_bytes(talk.unread[kind : kind + _HEAD])
            if len(talk.unread) < size:
                return
            if talk.introduced:
                self.statements += talk.unread[0] in _STATEMENTS
            else:
                talk.introduced = int.from_bytes(talk.unread[_HEAD : 2 * _HEAD]) not in _ASKS_FIRST
            del talk.unread[:size]


def _close_all(selector: selectors.BaseSelector) -> None:
    for key in list(selector.get_map().values()):
        if isinstance(key.data, _Talk):
            key.data.client.close()
            key.data.server.close()
