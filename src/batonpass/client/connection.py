"""The connection to a control plane: one host, with TLS unless it is this machine, and never a redirect.

The token is sent to that host and to nobody else. A request that is lost on the way is sent again. This is safe: every
act has a key, so only repeatable requests come here.
"""

import http.client
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from batonpass.client.told_error import told_error
from batonpass.errors import InvalidValueError, RemoteAnswerError, ServerUnreachableError
from batonpass.ledger.trace_scope import current_trace

PATIENCE: Final = 30.0  # seconds for which a control plane that does not answer is asked again
_TIMEOUT: Final = 150.0  # seconds for one answer: a control plane may wait for its database
_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 1.0
_MOST: Final = 64 * 1024 * 1024  # bytes of an answer
_REFUSED: Final = 400
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_TAKES_ANSWERS: Final = range(200, 300)


class RemoteReply(Struct, frozen=True, kw_only=True):
    """The answer of a control plane."""

    status: int
    body: bytes

    def json(self, url: str) -> Any:  # noqa: ANN401 - whatever JSON can hold
        """Return the body as JSON. Raises `RemoteAnswerError`."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise RemoteAnswerError(url, "the answer is not JSON") from None


class Connection:
    """Sends requests to one control plane. Safe to use from many threads, each of which has its own connection."""

    def __init__(
        self, url: str, token: str, *, patience: float = PATIENCE, certificates: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidValueError("url", "is https://HOST, or http://127.0.0.1:PORT on this machine")
        if parts.username is not None or parts.query or parts.fragment:
            raise InvalidValueError("url", "names a host and a port, and neither a user nor a question")
        if parts.scheme == "http" and not is_this_machine(parts.hostname):
            raise InvalidValueError("url", "is https: the token would cross the network for everybody to read")
        if not token or not token.isascii() or any(char.isspace() for char in token):
            raise InvalidValueError("token", "is missing: `batonpass token add` makes one; BATONPASS_TOKEN can hold it")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.token_id = token.partition(".")[0]
        self.patience = patience
        self._base = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port
        self._token = token
        self._tls = None if parts.scheme == "http" else certificates or ssl.create_default_context()
        self._own = threading.local()

    def send(
        self, method: str, path: str, said: object = None, headers: Mapping[str, str] | None = None
    ) -> RemoteReply:
        """Send a request, again and again while nobody answers. Raises the error that was told.

        Raises `ServerUnreachableError` once the patience is over.
        """
        trace = current_trace()
        headers = headers if trace is None else {**(headers or {}), "traceparent": trace}
        until = time.monotonic() + self.patience
        pause = _FIRST_PAUSE
        while True:
            try:
                reply, wait = self.send_once(method, path, said, headers)
            except ServerUnreachableError:
                if time.monotonic() + pause > until:
                    raise
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            if wait is not None and time.monotonic() + wait <= until:
                time.sleep(wait)
                continue
            return self.accepted(reply)

    def send_once(
        self, method: str, path: str, said: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[RemoteReply, float | None]:
        """Send a request once. Return the answer, and how long to wait if it says so."""
        body = None if method == "GET" else json.dumps({} if said is None else said, ensure_ascii=False).encode()
        sent = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **(headers or {})}
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            opened = self._opened()
            opened.request(method, self._base + path, body, sent)
            answered = opened.getresponse()
            read = answered.read(_MOST + 1)
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise RemoteAnswerError(self.url, f"its certificate is not valid: {error.verify_message}") from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise ServerUnreachableError(self.url, str(error) or type(error).__name__) from None
        if len(read) > _MOST or answered.will_close:
            self.close()
        if len(read) > _MOST:
            raise RemoteAnswerError(self.url, f"the answer is longer than {_MOST:,} bytes")
        wait = answered.headers.get("Retry-After", "") if answered.status in {_TOO_MANY, _UNAVAILABLE} else ""
        reply = RemoteReply(status=answered.status, body=read)
        return reply, float(wait) if wait.isdecimal() else None

    def accepted(self, reply: RemoteReply) -> RemoteReply:
        """Return an answer that is none of an error. Raises the error that it tells, and for a redirect."""
        if reply.status in _TAKES_ANSWERS:
            return reply
        if reply.status >= _REFUSED:
            raise told_error(self.url, reply.status, reply.body)
        # A token is for one host: whoever sends us elsewhere gets nothing more from us.
        raise RemoteAnswerError(self.url, f"it answered {reply.status}, and redirects are not followed")

    def close(self) -> None:
        """Close the connection of this thread."""
        opened = getattr(self._own, "opened", None)
        if opened is not None:
            self._own.opened = None
            opened.close()

    def _opened(self) -> http.client.HTTPConnection:
        opened: http.client.HTTPConnection | None = getattr(self._own, "opened", None)
        if opened is None:
            if self._tls is None:
                opened = http.client.HTTPConnection(self._host, self._port, timeout=_TIMEOUT)
            else:
                opened = http.client.HTTPSConnection(self._host, self._port, timeout=_TIMEOUT, context=self._tls)
            self._own.opened = opened
        return opened


def is_this_machine(host: str) -> bool:
    """Return whether a host is this machine, without asking a name server."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
