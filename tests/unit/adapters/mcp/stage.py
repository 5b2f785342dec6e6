"""A proxy on a stage: what it says to the client and to the server is written down, and its ledger is in memory."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from batonpass.adapters.mcp.messages.message import CLIENT_CAPABILITIES, CLIENT_INFO, VERSION
from batonpass.adapters.mcp.proxy.call_decision import Guard
from batonpass.adapters.mcp.proxy.proxy import Proxy
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyOrigin, ProxyRecorder
from batonpass.adapters.mcp.server_declaration import Server
from batonpass.handoff.files.protected_paths import Protected
from batonpass.model.bodies.body import Body
from batonpass.model.ledger.receipt import Receipt
from batonpass.model.policy.policy_rules import Policy
from batonpass.relay import Relay
from batonpass.store.factory import open_store
from batonpass.store.port import ReceiptQuery
from batonpass.wire.receipt_codec import decode_receipt

ANAS = ProxyOrigin(by="user:ana")
ASKABLE: dict[str, Any] = {"elicitation": {}}


class Stage:
    """A client, a server, and between them the proxy."""

    def __init__(
        self,
        *,
        enforced: bool = False,
        server: Server | None = None,
        policy: Policy | None = None,
        opened: Callable[[Relay], Relay] = lambda relay: relay,
        home: Path | None = None,
        origin: ProxyOrigin = ANAS,
        relay: Relay | None = None,
    ) -> None:
        self.relay = relay or Relay(open_store("memory:"), policy=policy, home=home)
        self.to_client: list[dict[str, Any]] = []
        self.to_server: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self.recorder = ProxyRecorder(
            lambda: opened(self.relay),
            origin,
            enforced=enforced,
            tell=self.complaints.append,
        )
        self.proxy = Proxy(
            server or Server(name="shop"),
            self.recorder,
            Guard(self.recorder, None if home is None else Protected.around(home, "", Path.cwd())),
            to_client=lambda line: self.to_client.append(json.loads(line)),
            to_server=lambda line: self.to_server.append(json.loads(line)),
        )

    def say(self, method: str | None = None, identifier: object = None, **rest: object) -> None:
        """Let the client say something."""
        self.proxy.from_client(json.dumps(_message(method, identifier, rest)).encode())

    def tell(self, method: str | None = None, identifier: object = None, **rest: object) -> None:
        """Let the server say something."""
        self.proxy.from_server(json.dumps(_message(method, identifier, rest)).encode())

    def greet(self, name: str = "shopper", capabilities: dict[str, Any] | None = None) -> None:
        """Let both introduce themselves."""
        said = {"protocolVersion": "2025-11-25", "clientInfo": {"name": name}, "capabilities": capabilities or {}}
        self.say("initialize", 0, params=said)
        self.tell(None, 0, result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x"}})
        self.to_client.clear()
        self.to_server.clear()

    def call(
        self, identifier: object, tool: str = "buy", modern: dict[str, Any] | None = None, **params: object
    ) -> None:
        """Let the client call a tool; `modern` are the capabilities of a client that says with each call who it is."""
        given: dict[str, object] = {"name": tool, "arguments": {"what": "tea"}, **params}
        if modern is not None:
            info = {"name": "shopper", "version": "1"}
            given["_meta"] = {VERSION: "2026-07-28", CLIENT_INFO: info, CLIENT_CAPABILITIES: modern}
        self.say("tools/call", identifier, params=given)

    def list_tools(self, *tools: dict[str, Any]) -> None:
        """Let the client ask for the tools, and the server answer."""
        self.say("tools/list", "list")
        self.tell(None, "list", result={"tools": list(tools)})
        self.to_client.clear()
        self.to_server.clear()

    def everything(self) -> list[Receipt]:
        """Return all that is recorded, in order."""
        with self.relay.store.view() as view:
            return [decode_receipt(stored.payload) for stored in view.find_receipts(ReceiptQuery())]

    def receipts(self) -> list[Receipt]:
        """Return what is recorded of runs, in order."""
        return [receipt for receipt in self.everything() if receipt.stream.startswith("run_")]

    def kinds(self) -> list[str]:
        """Return the kinds of what is recorded of runs."""
        return [str(receipt.body.kind) for receipt in self.receipts()]

    def bodies(self, *kinds: type[Body]) -> Iterable[Any]:
        """Return what receipts of some kinds say."""
        return [receipt.body for receipt in self.everything() if isinstance(receipt.body, kinds)]

    def words(self, name: str) -> list[str]:
        """Return the contents of that name, in the order of their receipts."""
        refs = [receipt.content[name] for receipt in self.receipts() if name in receipt.content]
        return [self.relay.read(ref.id).decode() for ref in refs]


def _message(method: str | None, identifier: object, rest: dict[str, object]) -> dict[str, Any]:
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if method is not None:
        message["method"] = method
    if identifier is not None:
        message["id"] = identifier
    return message | rest
