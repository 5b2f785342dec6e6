"""The boundary of a server: every request passes here, whichever door it is for.

Host and Origin are checked on every route, mounted doors included: a page of another site that points a name at this
address, or that posts to it, gets nothing. Every answer carries the headers that keep browsers careful.
"""

import ipaddress
import logging
import secrets
from collections.abc import Collection, Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from batonpass.errors import BatonpassError, InternalFaultError, WrongHostError, WrongOriginError
from batonpass.ledger.trace_scope import traced
from batonpass.server.answer import JSON, error_body, status_of

TRACEPARENT: Final = "traceparent"
_LOG: Final = logging.getLogger("batonpass.server")
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
_TRANSPORT_SECURITY: Final = "max-age=31536000"


class Boundary:
    """Passes on requests that are meant for this server, and answers everything else itself."""

    def __init__(self, app: ASGIApp, *, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        started = False

        async def careful(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._guard(MutableHeaders(scope=message), scope)
            await send(message)

        try:
            self._require_ours(Headers(scope=scope), scope)
        except BatonpassError as error:
            await refused(error)(scope, receive, careful)
            return
        try:
            # A trace never decides anything: one that is broken is ignored, at every door.
            with traced(Headers(scope=scope).get(TRACEPARENT)):
                await self._app(scope, receive, careful)
        except Exception as error:
            fault = InternalFaultError(secrets.token_hex(4))
            # The path, and never the query or the headers: those may hold what nobody should read.
            _LOG.exception("%s: %s %s failed", fault.number, scope.get("method"), scope.get("path"))
            if started:
                raise
            await refused(fault)(scope, receive, careful)
            del error

    def _require_ours(self, headers: Headers, scope: Scope) -> None:
        host = headers.get("host", "")
        if _name_of(host) not in self._hosts:
            raise WrongHostError(host[:100])
        origin = headers.get("origin")
        if origin is not None and not _is_same(origin, host, str(scope.get("scheme", "http"))):
            raise WrongOriginError(origin[:100])

    def _guard(self, headers: MutableHeaders, scope: Scope) -> None:
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)
        if scope.get("scheme") == "https":
            headers.setdefault("Strict-Transport-Security", _TRANSPORT_SECURITY)
        if "server" in headers:
            del headers["server"]


def refused(error: BatonpassError) -> Response:
    """Return an error as an answer."""
    headers = {}
    status = status_of(error)
    if status == 401:  # noqa: PLR2004 - what a client without a token is told to send
        headers["WWW-Authenticate"] = 'Bearer realm="batonpass"'
    if isinstance(wait := getattr(error, "seconds", None), int):
        headers["Retry-After"] = str(wait)
    if allowed := getattr(error, "allowed", None):
        headers["Allow"] = ", ".join(allowed)
    return Response(error_body(error), status, headers, JSON)


def hosts_for(bound: str, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the names under which a server that listens at an address may be asked for."""
    own = {bound.lower().strip("[]"), *(name.lower() for name in names)}
    return frozenset(own | _LOOPBACK_NAMES if is_loopback(bound) else own)


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address."""
    if address.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def _name_of(host: str) -> str:
    """Return the name in a Host header, without the port; nothing if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        named = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return ""
    return "" if parts.username is not None or parts.path or parts.query or parts.fragment else named.lower()


def _is_same(origin: str, host: str, scheme: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme == scheme and parts.netloc.lower() == host.lower() and not parts.path
