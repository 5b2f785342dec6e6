"""A control plane without a network, and relays of programs elsewhere that work against it."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from batonpass.client.connection import Connection, RemoteReply
from batonpass.client.exchange import PlaneExchange
from batonpass.client.remote_relay import RemoteRelay
from batonpass.errors import ServerUnreachableError
from batonpass.relay import Relay
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from tests.unit.server.visitor import HERE, Visitor

ANA = "user:ana"
URL = f"http://{HERE}"
ALL = ("read:**", "write:**", "call:*", "run:*")


class Wire(Connection):
    """A connection that calls an application. `before` and `after` may break it, as a network does."""

    def __init__(self, plane: ControlPlane, token: str) -> None:
        super().__init__(URL, token, patience=5.0)
        self.plane = plane
        self._served: ControlPlane | None = None
        self.text = token
        self.before: Callable[[str, object], None] = lambda *_: None
        self.after: Callable[[str, RemoteReply], RemoteReply] = lambda _, reply: reply
        self.sent: list[tuple[str, dict[str, str]]] = []

    def send_once(
        self, method: str, path: str, said: object = None, headers: Mapping[str, str] | None = None
    ) -> tuple[RemoteReply, float | None]:
        """Send a request to the application of the control plane that is there now."""
        self.before(path, said)
        self.sent.append((path, dict(headers or {})))
        if self._served is not self.plane:
            self._served, self._app = self.plane, make_app(self.plane, hosts=hosts_for("127.0.0.1"))
        visitor = Visitor(self._app, self.text)
        given = {name.lower(): text for name, text in (headers or {}).items()}
        given |= {} if method == "GET" else {"content-type": "application/json"}
        body = b"" if method == "GET" else json.dumps({} if said is None else said).encode()
        answered = visitor.send(method, path, body, **given)
        return self.after(path, RemoteReply(status=answered.status, body=answered.body)), None

    def lose(self, path: str) -> None:
        """Break the connection."""
        raise ServerUnreachableError(self.url, f"lost at {path}")


class Elsewhere(RemoteRelay):
    """A relay of a program elsewhere, over such a wire."""

    def __init__(self, plane: ControlPlane, token: str, home: Path, *, in_files: bool = False) -> None:
        super().__init__(URL, token=token, home=home, keys_in_files=in_files, work_tree=home)
        self.wire = Wire(plane, token)
        self._exchange = PlaneExchange(self.wire, self._exchange.keys)


class Place:
    """A ledger, its control plane, and who may come in."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / ".batonpass"
        self.relay = self._open()
        self.plane = ControlPlane.over(self.relay)
        (directory / "elsewhere").mkdir()

    def _open(self) -> Relay:
        return Relay.open(
            self.home / "ledger.db", home=self.home, keys_in_files=True, work_tree=self.directory, policy=self._policy()
        )

    def _policy(self) -> Path | None:
        file = self.directory / "batonpass.toml"
        return file if file.exists() else None

    def token(self, principal: str = ANA, role: str = "agent", agents: tuple[str, ...] = ()) -> str:
        """Return a token with a wide ceiling."""
        may = ALL if role == "agent" else ()
        issued = self.relay.admin.add_token(
            principal, role, by=ANA, lasts=timedelta(days=1), may=may, may_delegate=may, agents=agents
        )
        return issued.text

    def elsewhere(self, token: str | None = None, *, in_files: bool = False) -> Elsewhere:
        """Return the relay of a program elsewhere."""
        return Elsewhere(self.plane, token or self.token(), self.directory / "elsewhere", in_files=in_files)

    def restart(self, *relays: Elsewhere) -> None:
        """Let another process of the server take the place of this one: whatever was in memory is gone."""
        self.relay.close()
        self.relay = self._open()
        self.plane = ControlPlane.over(self.relay)
        for relay in relays:
            relay.wire.plane = self.plane

    def kinds(self) -> list[str]:
        """Return the kinds of all receipts about runs, in order."""
        from batonpass.store.port import ReceiptQuery  # noqa: PLC0415
        from batonpass.wire.receipt_codec import decode_receipt  # noqa: PLC0415

        with self.relay.store.view() as view:
            found = [decode_receipt(one.payload).kind for one in view.find_receipts(ReceiptQuery())]
        return [kind for kind in found if kind.partition(".")[0] in {"run", "handoff", "tool", "checkpoint"}]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Return a new ledger with its control plane."""
    made = Place(tmp_path)
    yield made
    made.relay.close()
