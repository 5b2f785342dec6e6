"""Runs the proxy between a client, on stdin and stdout, and a server, until one of them is gone."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

from batonpass.adapters.mcp.messages.line_pipes import Bell, Outlet, read_lines
from batonpass.adapters.mcp.proxy.backend import Backend
from batonpass.adapters.mcp.proxy.call_decision import Guard
from batonpass.adapters.mcp.proxy.proxy import Proxy
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyRecorder
from batonpass.adapters.mcp.server_declaration import Server

_STDIN: Final = 0
_STDOUT: Final = 1
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ServerGoneError(Exception):
    """The server ended while its client was still connected."""

    code = "mcp.gone"


def serve(
    server: Server,
    backend: Backend,
    recorder: ProxyRecorder,
    guard: Guard,
    *,
    stdin: int = _STDIN,
    stdout: int = _STDOUT,
) -> ServerGoneError | None:
    """Pass messages until the client or the server is gone. Return an error if it was the server."""
    bell = Bell()
    proxy = Proxy(server, recorder, guard, to_client=_until_gone(Outlet(stdout).send, bell), to_server=backend.send)
    gone: list[ServerGoneError] = []
    leaving = threading.Event()

    def take_from_server() -> None:
        try:
            for line in backend.lines():
                proxy.from_server(line)
            if not leaving.is_set():
                gone.append(ServerGoneError(backend.end))
                proxy.end(backend.end)
        finally:
            bell.ring()

    from_server = threading.Thread(target=take_from_server, name="from-server")
    from_server.start()
    with _rung_by_signals(bell):  # until the very end: a second signal must not keep the run from being closed
        try:
            with contextlib.suppress(OSError):  # the server accepts nothing any more: it is gone, or as good as gone
                for line in read_lines(stdin, bell):
                    proxy.from_client(line)
                leaving.set()
        finally:
            backend.close()
            from_server.join()
            recorder.close(gone[0] if gone else None)
    bell.close()
    return gone[0] if gone else None


def _until_gone(send: Callable[[bytes], None], bell: Bell) -> Callable[[bytes], None]:
    """Return a `send` that ends the proxy when nobody reads any more: a client that is gone cannot be told."""

    def sending(line: bytes) -> None:
        try:
            send(line)
        except OSError:
            bell.ring()

    return sending


@contextlib.contextmanager
def _rung_by_signals(bell: Bell) -> Iterator[None]:
    def ring(_: int, __: FrameType | None) -> None:
        bell.ring()

    before = {number: signal.signal(number, ring) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
