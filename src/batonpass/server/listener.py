"""Where a server listens: the address, the certificate, and how it ends."""

import asyncio
import contextlib
import errno
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from batonpass.errors import ServerNotStartedError
from batonpass.server.boundary import is_loopback

_BACKLOG: Final = 512
_MOST_CONNECTIONS: Final = 1000
_IDLE_SECONDS: Final = 15
_REQUEST_SECONDS: Final = 60.0  # for a client to send one request, its body included


class ServerPlace(Struct, frozen=True, kw_only=True):
    """Where a server listens, and how it is reached."""

    host: str = "127.0.0.1"
    port: int = 7420
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()  # addresses of proxies whose word about a client counts
    insecure: bool = False  # listen for others without TLS, because somebody said so

    def require_safe(self) -> None:
        """Raise `ServerNotStartedError` if tokens would cross a network that others can read."""
        if (self.certificate is None) != (self.key is None):
            raise ServerNotStartedError("give both --certificate and --key, or neither")
        if is_loopback(self.host) or self.certificate is not None or self.proxies or self.insecure:
            return
        raise ServerNotStartedError(
            f"{self.host} can be reached from other machines, and tokens would cross the network unencrypted; give "
            "--certificate and --key, or --proxy ADDRESS if one does that in front of it, or --insecure"
        )

    @property
    def scheme(self) -> str:
        """Return the scheme of its address."""
        return "http" if self.certificate is None else "https"


@contextlib.contextmanager
def bound(place: ServerPlace) -> Iterator[tuple[socket.socket, str]]:
    """Open the socket of a place, and return it with its address. Raises `ServerNotStartedError`."""
    place.require_safe()
    _require_certificate(place)
    family = _family(place)
    try:
        opened = socket.create_server((place.host, place.port), family=family, backlog=_BACKLOG)
        # Connections inherit it. asyncio sets it only where a socket names its protocol, and this one does not.
        # Without it the second part of each answer waits 40 ms until the client has acknowledged the first.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise ServerNotStartedError(_why(place.host, place.port, "--port", error)) from None
    with opened:
        port = opened.getsockname()[1]
        host = f"[{place.host}]" if family is socket.AF_INET6 else place.host
        yield opened, f"{place.scheme}://{host}:{port}"


def free_port(place: ServerPlace, port: int, option: str) -> int:
    """Return a port of a place that nobody listens at: this one, or any for 0. Raises `ServerNotStartedError`.

    It is for libraries that open their sockets themselves; in between, somebody else may take it.
    """
    try:
        with socket.create_server((place.host, port), family=_family(place)) as opened:
            return int(opened.getsockname()[1])
    except OSError as error:
        raise ServerNotStartedError(_why(place.host, port, option, error)) from None


def _family(place: ServerPlace) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in place.host else socket.AF_INET


def _why(host: str, port: int, option: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is taken; give another with {option}, or {option} 0 for any that is free, or stop what "
            "listens there"
        )
    if error.errno == errno.EACCES:
        return f"this user may not listen at port {port}; give one above 1023 with {option}"
    return f"cannot listen at {host}:{port}: {error.strerror or error}"


def _require_certificate(place: ServerPlace) -> None:
    if place.certificate is None or place.key is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(place.certificate, place.key)
    except FileNotFoundError:
        missing = next((file for file in (place.certificate, place.key) if not file.exists()), place.certificate)
        raise ServerNotStartedError(f"there is no file {missing}") from None
    except (ssl.SSLError, OSError) as error:
        why = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise ServerNotStartedError(
            f"{place.certificate} and {place.key} are no certificate with its key: {why}"
        ) from None


class HastyProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]  # which class it is depends on what is installed
    """uvicorn's protocol, which lets a client go that takes too long to send one request.

    uvicorn waits for good for a head that never ends. A thousand of those would keep everybody else out.
    """

    seconds: float = _REQUEST_SECONDS
    _waits: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._waits = self.loop.call_later(self.seconds, self._let_go)

    def data_received(self, data: bytes) -> None:
        """Take the bytes that came, and wait for the rest."""
        super().data_received(data)
        if self._is_whole():
            self._forget()
        elif self._waits is None:  # the next request on this connection has begun
            self._waits = self.loop.call_later(self.seconds, self._let_go)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._forget()
        super().connection_lost(exc)

    def _is_whole(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _let_go(self) -> None:
        self._waits = None
        answered = self.cycle is not None and self.cycle.response_complete
        if not self._is_whole() and not answered and not self.transport.is_closing():
            self.transport.close()

    def _forget(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None


class DoorBeside(Protocol):
    """Something that is served beside HTTP, in the same event loop."""

    async def begin(self) -> None:
        """Begin, once HTTP is listened for."""

    async def end(self, drain_seconds: float) -> None:
        """Let open requests finish for so long, and end."""


class LedgerServer(uvicorn.Server):
    """Serves other doors beside HTTP, says when all of them listen, and ends with them."""

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None], beside: Sequence[DoorBeside] = ()) -> None:
        super().__init__(config)
        self._ready = ready
        self._beside = beside

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            for door in self._beside:
                await door.begin()
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let open requests finish, at every door at the same time."""
        seconds = self.config.timeout_graceful_shutdown or 0
        await asyncio.gather(super().shutdown(sockets), *(door.end(seconds) for door in self._beside))


def listen(
    app: ASGIApp,
    place: ServerPlace,
    opened: socket.socket,
    *,
    ready: Callable[[], None],
    beside: Sequence[DoorBeside] = (),
    drain_seconds: int = 30,
    request_seconds: float = _REQUEST_SECONDS,
) -> None:
    """Serve until SIGTERM or Ctrl-C. Requests under way are finished first, for at most `drain_seconds`."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        http=type("Hasty", (HastyProtocol,), {"seconds": request_seconds}),
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=drain_seconds,
        proxy_headers=bool(place.proxies),
        forwarded_allow_ips=list(place.proxies) or None,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
    )
    # uvicorn sends itself the signal again once it is done, to whichever handler was there before. That one does
    # nothing: whoever called us goes on, and closes the ledger.
    before = {number: signal.signal(number, _pass_over) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        LedgerServer(config, ready=ready, beside=beside).run(sockets=[opened])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_over(*_: object) -> None:
    """Do nothing about a signal."""
