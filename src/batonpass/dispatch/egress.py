"""Requests that Batonpass makes to others: to a judged address, within limits, and never anywhere else.

The name is looked up once, by the rule. Only the judged addresses are dialled, with the name for the Host header, for
SNI and for the certificate. Redirects are not followed, and proxies of the environment are not used: either would lead
to an address that nobody judged.
"""

import contextlib
import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from batonpass.dispatch.egress_rule import EgressRule, EgressTarget
from batonpass.errors import EgressFailedError, EgressRedirectedError, EgressTooLargeError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Dial = Callable[[str, int, float], socket.socket]

_REDIRECTS: Final = range(300, 400)


class EgressLimits(Struct, frozen=True, kw_only=True):
    """How long one request may take, from the first connection to the last byte, and how much of an answer is read."""

    seconds: float = 10.0
    answer_bytes: int = 1024 * 1024


class EgressAnswer(Struct, frozen=True, kw_only=True):
    """The answer of the other side. It came from outside: nobody may believe it without a reason."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: bytes

    @property
    def is_good(self) -> bool:
        """Return whether it was taken."""
        return self.status // 100 == 2  # noqa: PLR2004 - 2xx


def dial_address(address: str, port: int, seconds: float) -> socket.socket:
    """Return a connection to an address, which is no name. Raises `OSError`."""
    return socket.create_connection((address, port), seconds)


class Egress:
    """Makes requests within the rule. Safe to use from many threads."""

    def __init__(
        self,
        rule: EgressRule,
        *,
        limits: EgressLimits | None = None,
        trust: ssl.SSLContext | None = None,
        dial: Dial = dial_address,
    ) -> None:
        self._rule = rule
        self._limits = limits or EgressLimits()
        self._trust = trust
        self._dial = dial

    def judge(self, url: str) -> EgressTarget:
        """Return where a URL leads, without asking it. Raises as `EgressRule.judge` does."""
        return self._rule.judge(url)

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        wants_body: bool = True,
    ) -> EgressAnswer:
        """Make a request and return its answer, with any status. Without `wants_body` none of its body is read.

        Raises `EgressRefusedError`, `EgressRedirectedError`, `EgressTooLargeError` or `EgressFailedError`.
        """
        until = time.monotonic() + self._limits.seconds
        target = self._rule.judge(url)
        with contextlib.closing(self._connect(target, until)) as opened:
            connection = http.client.HTTPConnection(target.host, target.port)
            connection.sock = _Line(opened, until)
            try:
                connection.request(
                    method, target.path, body, {**(headers or {}), "Host": target.netloc, "Connection": "close"}
                )
                answer = connection.getresponse()
                if answer.status in _REDIRECTS:
                    raise EgressRedirectedError(target.where, answer.status)
                got = self._read(target, answer) if wants_body else b""
            except (OSError, http.client.HTTPException) as error:
                raise EgressFailedError(target.where, _why(error, self._limits)) from None
            named = {name.lower(): value for name, value in answer.getheaders()}
            return EgressAnswer(status=answer.status, headers=named, body=got)

    def _read(self, target: EgressTarget, answer: http.client.HTTPResponse) -> bytes:
        got = answer.read(self._limits.answer_bytes + 1)
        if len(got) > self._limits.answer_bytes:
            raise EgressTooLargeError(target.where, self._limits.answer_bytes)
        if answer.length:  # http.client says nothing if a part is missing at the end
            raise http.client.IncompleteRead(got, answer.length)
        return got

    def _connect(self, target: EgressTarget, until: float) -> socket.socket:
        problem: Exception | None = None
        for address in target.addresses:
            left = until - time.monotonic()
            if left <= 0:
                problem = TimeoutError()
                break
            try:
                return self._secured(target, self._dial(address, target.port, left), until)
            except OSError as error:  # ssl.SSLError among them: another address may have the right certificate
                problem = error
        raise EgressFailedError(target.where, _why(problem or OSError("no address"), self._limits))

    def _secured(self, target: EgressTarget, opened: socket.socket, until: float) -> socket.socket:
        if target.scheme != "https":
            return opened
        try:
            opened.settimeout(max(until - time.monotonic(), 0.001))
            if self._trust is None:
                self._trust = ssl.create_default_context()  # reads a few hundred certificates: once, and when needed
            return self._trust.wrap_socket(opened, server_hostname=target.host)
        except BaseException:
            opened.close()
            raise


class _Line:
    """A connection with one deadline for all its operations, which no byte now and then can prolong."""

    def __init__(self, opened: socket.socket, until: float) -> None:
        self._socket = opened
        self._until = until

    def hurry(self) -> socket.socket:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return self._socket

    def sendall(self, data: Any) -> None:  # noqa: ANN401 - as of a socket
        self.hurry().sendall(data)

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_Answered(self))

    def close(self) -> None:
        """Do nothing: http.client closes its end before the answer is read, and the opener closes it."""


class _Answered(io.RawIOBase):
    def __init__(self, line: _Line) -> None:
        super().__init__()
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        return self._line.hurry().recv_into(buffer)


def _why(error: Exception, limits: EgressLimits) -> str:
    if isinstance(error, TimeoutError):
        return f"it took longer than {limits.seconds:g} seconds"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not one of that name ({error.verify_message})"
    if isinstance(error, http.client.HTTPException):
        return f"its answer is not HTTP ({type(error).__name__})"
    return str(getattr(error, "strerror", None) or getattr(error, "reason", None) or error)
