"""`Relay.open("https://…")` against a server in a process of its own, which is killed while a job is done."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass import tool
from batonpass.client.connection import RemoteReply
from batonpass.client.remote_relay import RemoteRelay
from batonpass.errors import RemoteAnswerError, ServerUnreachableError
from batonpass.relay import Relay
from batonpass.store.port import ReceiptQuery
from tests.integration.certificates import make_certificate
from tests.integration.server_process import Served

ANA = "user:ana"
ALL = ("read:**", "write:**", "call:*", "run:*")
ABOUT_RUNS = {"run", "handoff", "tool", "checkpoint"}
# At which request the server dies, and when: before it comes, while it waits for a signature, after it was done.
DEATHS = {"/calls": "before", "/attempts": "between", "/close": "after"}
MADE: list[str] = []


@tool("look", reads=True)
def look(where: str) -> str:
    """Look somewhere."""
    MADE.append(where)
    return f"seen {where}"


@dataclass(slots=True)
class Fate:
    """Kills a server at each of some requests once, and starts it again."""

    server: Served
    send: Callable[..., tuple[RemoteReply, float | None]]
    url: str
    left: dict[str, str] = field(default_factory=dict)
    act: str = ""  # whose next step a signature is

    def __call__(
        self, method: str, path: str, said: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[RemoteReply, float | None]:
        """Send a request, if the server lives."""
        self.act = self.act if path.startswith("/v1/acts/") else path
        name = next((one for one in self.left if self.act.endswith(one)), "")
        when = self.left.get(name)
        if when == "before":
            self._strike(name)
        reply, wait = self.send(method, path, said, headers)
        if when == "between" and reply.status == 202:
            self._strike(name)
        if when == "after" and reply.status != 202:
            self._strike(name)
            raise ServerUnreachableError(self.url, "it died before it answered")
        return reply, wait

    def _strike(self, name: str) -> None:
        del self.left[name]
        self.server.kill()
        self.server.start()


def job(relay: Relay) -> None:
    """Call a tool, hand something off, have it done, and close."""
    with relay.start("Fix it", by=ANA) as lead:
        lead.call(look, "here")
        with lead.hand_off("editor", "Edit", may=["call:*"]) as editor:
            editor.call(look, "there")
            editor.report("done")
        lead.checkpoint([1, 2])


def recorded(relay: Relay) -> list[str]:
    """Return the kinds of all receipts about runs, in order."""
    relay.store.sequence()
    with relay.store.view() as view:
        kinds = [stored.kind for stored in view.find_receipts(ReceiptQuery(first=1, last=view.last_position()))]
    return [kind for kind in kinds if kind.partition(".")[0] in ABOUT_RUNS]


def a_token(ledger: str | Path, home: Path) -> str:
    """Return a token for an agent."""
    with Relay.open(ledger, home=home) as relay:
        return relay.admin.add_token(ANA, "agent", by=ANA, lasts=timedelta(hours=1), may=ALL, may_delegate=ALL).text


def killed_thrice(server: Served, relay: Relay, ledger: str | Path) -> None:
    """Do a job, and once more while the server dies three times: the same is recorded, and each tool is called once."""
    assert isinstance(relay, RemoteRelay)
    MADE.clear()
    job(relay)
    once = [*MADE]
    connection = relay._exchange.connection
    fate = Fate(server, connection.send_once, connection.url, dict(DEATHS))
    connection.send_once = fate  # type: ignore[method-assign]
    MADE.clear()
    job(relay)
    with Relay.open(ledger, home=server.directory / ".batonpass") as own:
        found = recorded(own)
        own.verify()

    assert ({}, once) == (fate.left, MADE)
    assert found[: len(found) // 2] == found[len(found) // 2 :]
    assert 8 < len(found)


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Served, str, Path]]:
    """Start a server with a certificate of an authority of our own, which the variable of OpenSSL names."""
    authority = make_certificate(tmp_path, "authority")
    certificate, key = make_certificate(tmp_path, "localhost", by=authority)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority[0]))
    token = a_token(tmp_path / ".batonpass" / "ledger.db", tmp_path / ".batonpass")
    server = Served(tmp_path, "--no-link", "--certificate", str(certificate), "--key", str(key))
    yield server, token, authority[0]
    server.kill()


@pytest.mark.slow
def test_over_tls_a_killed_server_loses_nothing_and_does_nothing_twice(
    secured: tuple[Served, str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL before, between and after acts; a certificate that does not fit gets one sentence, and no token."""
    server, token, _ = secured
    ledger = tmp_path / ".batonpass" / "ledger.db"
    with Relay.open(f"https://localhost:{server.port}", token=token, home=tmp_path / "client") as relay:
        killed_thrice(server, relay, ledger)
    with (
        Relay.open(f"https://127.0.0.1:{server.port}", token=token, home=tmp_path / "client") as other,
        pytest.raises(RemoteAnswerError, match="its certificate is not valid: IP address mismatch"),
    ):
        other.start("Fix it", by=ANA)
    monkeypatch.delenv("SSL_CERT_FILE")
    with (
        Relay.open(f"https://localhost:{server.port}", token=token, home=tmp_path / "client") as stranger,
        pytest.raises(RemoteAnswerError, match="its certificate is not valid: unable to get local issuer") as told,
    ):
        stranger.start("Fix it", by=ANA)

    assert "\n" not in str(told.value)


@pytest.mark.slow
@pytest.mark.postgres
def test_on_postgres_a_killed_server_loses_nothing_and_does_nothing_twice(tmp_path: Path, postgres_url: str) -> None:
    """The same with the ledger in a database, which outlives the server that was writing."""
    token = a_token(postgres_url, tmp_path / ".batonpass")
    server = Served(tmp_path, "--no-link", "--ledger", postgres_url)
    try:
        with Relay.open(f"http://127.0.0.1:{server.port}", token=token, home=tmp_path / "client") as relay:
            killed_thrice(server, relay, postgres_url)
    finally:
        server.kill()
