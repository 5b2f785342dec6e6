"""A wire between a store and its server that a test can cut at the worst moment."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Self


class Lost(Enum):
    """What does not arrive before the connection breaks."""

    REQUEST = auto()
    REPLY = auto()


class Proxy:
    """Forwards connections to a server, and breaks one when something is to be lost."""

    def __init__(self, port: int, *, at: int = 0) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", at))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._clients: list[socket.socket] = []
        self._servers: list[socket.socket] = []
        self._losing: Lost | None = None
        self._spared = 0
        self._before_break: Callable[[], object] = lambda: None
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()

    def lose(self, what: Lost, *, spared: int = 0, then: Callable[[], object] = lambda: None) -> None:
        """Let the next thing of this kind vanish, do something, and only then break its connection.

        So many of this kind arrive before it.
        """
        with self._lock:
            self._losing, self._spared, self._before_break = what, spared, then

    def break_connections(self) -> None:
        """Break the connections that are there, as the store sees it: the server does not learn of it."""
        with self._lock:
            for client in self._clients:
                _break(client)

    def cut(self) -> None:
        """Take no more connections and break those that are there."""
        with self._lock:
            for end in [self._listener, *self._clients, *self._servers]:
                _break(end)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    self._clients.append(client)
                    self._servers.append(server)
                threading.Thread(target=self._pump, args=(client, server, Lost.REQUEST), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, Lost.REPLY), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, kind: Lost) -> None:
        try:
            while data := source.recv(1 << 16):
                if self._is_lost(kind):
                    break
                sink.sendall(data)
        except OSError:
            pass  # the other direction was broken first
        finally:
            for end in (source, sink):
                _break(end)

    def _is_lost(self, kind: Lost) -> bool:
        with self._lock:
            if self._losing is not kind:
                return False
            if self._spared:
                self._spared -= 1
                return False
            self._losing = None
        self._before_break()
        return True


def _break(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
