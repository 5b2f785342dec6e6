"""Where a server listens: the address, the certificate, and how it ends."""

import asyncio
import contextlib
import errno
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

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
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        opened = socket.create_server((place.host, place.port), family=family, backlog=_BACKLOG)
        # Connections inherit it. asyncio sets it only where a socket names its protocol, and this one does not.
        # Without it the second part of each answer waits 40 ms until the client has acknowledged the first.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise ServerNotStartedError(_why(place, error)) from None
    with opened:
        port = opened.getsockname()[1]
        host = f"[{place.host}]" if family is socket.AF_INET6 else place.host
        yield opened, f"{place.scheme}://{host}:{port}"


def _why(place: ServerPlace, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {place.port} is taken; give another with --port, or --port 0 for any that is free, or stop what "
            "listens there"
        )
    if error.errno == errno.EACCES:
        return f"this user may not listen at port {place.port}; give one above 1023 with --port"
    return f"cannot listen at {place.host}:{place.port}: {error.strerror or error}"


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
        """Take what came, and wait for the rest."""
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


class _Server(uvicorn.Server):
    """Says when it listens, and lets whoever streams know when it ends."""

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def listen(
    app: ASGIApp,
    place: ServerPlace,
    opened: socket.socket,
    *,
    ready: Callable[[], None],
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
        _Server(config, ready=ready).run(sockets=[opened])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pass_over(*_: object) -> None:
    """Do nothing about a signal."""
