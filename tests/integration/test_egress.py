"""Requests of our own over real connections: TLS is checked against the name, while the judged address is dialled."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from batonpass.dispatch.egress import Egress, EgressLimits
from batonpass.dispatch.egress_rule import EgressRule
from batonpass.errors import EgressFailedError, EgressRedirectedError
from batonpass.model.policy.listed_place import read_listed
from tests.integration.certificates import make_certificate

NAME = "hooks.example.org"


class Handler(BaseHTTPRequestHandler):
    """Answers, and sends some elsewhere."""

    asked: ClassVar[list[tuple[str, str]]]

    def do_GET(self) -> None:
        """Answer a request."""
        self.asked.append((self.path, self.headers["Host"]))
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "/there")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path, name: str) -> Iterator[tuple[int, list[tuple[str, str]], list[str | None], Path]]:
    """Serve on loopback with a certificate of a name: the port, what was asked, and which names were wanted."""
    certificate, key = make_certificate(folder, name)
    wanted: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.sni_callback = lambda _, given, __: wanted.append(given)

    class Own(Handler):
        asked: ClassVar[list[tuple[str, str]]] = []

    with HTTPServer(("127.0.0.1", 0), Own) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port, Own.asked, wanted, certificate
        server.shutdown()
        thread.join()


def egress(certificate: Path, port: int) -> Egress:
    """Return an egress that trusts one certificate, and whose name server leads to loopback once."""
    answers = iter([["127.0.0.1"]])
    rule = EgressRule([read_listed(f"127.0.0.1:{port}")], resolve=lambda *_: next(answers))
    trust = ssl.create_default_context(cafile=certificate)
    return Egress(rule, limits=EgressLimits(seconds=60), trust=trust)


def test_the_name_is_checked_and_the_address_is_dialled(tmp_path: Path) -> None:
    """SNI, Host and certificate have the name; the name server is asked once."""
    with served(tmp_path, NAME) as (port, asked, wanted, certificate):
        answer = egress(certificate, port).send("GET", f"https://{NAME}:{port}/here")

    assert (200, b"hi") == (answer.status, answer.body)
    assert ([("/here", f"{NAME}:{port}")], [NAME]) == (asked, wanted)


def test_a_certificate_of_another_name_is_a_failure(tmp_path: Path) -> None:
    """Nothing is sent to whoever is there instead."""
    with (
        served(tmp_path, "other.example.org") as (port, asked, _, certificate),
        pytest.raises(EgressFailedError, match="its certificate is not one of that name"),
    ):
        egress(certificate, port).send("GET", f"https://{NAME}:{port}/secret")

    assert [] == asked


def test_a_real_redirect_is_not_followed(tmp_path: Path) -> None:
    """One request is made, and no more."""
    with served(tmp_path, NAME) as (port, asked, _, certificate), pytest.raises(EgressRedirectedError):
        egress(certificate, port).send("GET", f"https://{NAME}:{port}/away")

    assert [("/away", f"{NAME}:{port}")] == asked


def test_nobody_is_there() -> None:
    """A port that nobody listens at is a failure, in one sentence."""
    rule = EgressRule([read_listed("127.0.0.1")])

    with pytest.raises(EgressFailedError, match="Connection refused"):
        Egress(rule).send("GET", "http://127.0.0.1:1/")
