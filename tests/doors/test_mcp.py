"""The door of MCP clients: the proxy before a server, in this process, and as a process."""

import json
import subprocess
import sys
from typing import Any, ClassVar

import pytest

from batonpass.adapters.mcp.proxy.call_decision import Guard
from batonpass.adapters.mcp.proxy.proxy import Proxy
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyOrigin, ProxyRecorder
from batonpass.adapters.mcp.server_declaration import read_server
from batonpass.relay import recording_of
from batonpass.testing.doors import MADE, PERSON, Act, Door, DoorConformance, Opened, Stage, Told, heard
from tests.doors.mcp import SERVERS, McpDoor
from tests.doors.tools import FEW, NAMES, arguments_of
from tests.integration.cli.shell import PATIENCE, PROGRAM, surroundings

# A server in a few lines: it does what it is asked to do, in the directory that it is started in.
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    given = asked["params"]["arguments"]
    text = "done"
    match asked["params"]["name"]:
        case "write_file":
            open(given["path"], "w").write(given["text"])
        case "read_file":
            text = open(given["path"]).read()
        case "pay":
            open("payments.txt", "a").write(f"{given['to']} {given['amount']}\\n")
    result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
SPELLED = "a rule denies a target that is spelled otherwise"
AT_ONCE = "two servers would be two attempts at one handoff at once"


class Server:
    """A proxy, and behind it a server that does what it is asked to do."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._asked = 0
        self._to_client: list[dict[str, Any]] = []
        self._to_server: list[dict[str, Any]] = []
        handoff = None if stage.handoff is None else stage.handoff.id
        origin = ProxyOrigin(by=PERSON, agent=stage.agent, handoff=handoff)
        self.recorder = ProxyRecorder(stage.relay, origin, enforced=stage.enforced, tell=lambda _: None)
        self._proxy = Proxy(
            read_server(stage.file, name),
            self.recorder,
            Guard(self.recorder),
            to_client=lambda line: self._to_client.append(json.loads(line)),
            to_server=lambda line: self._to_server.append(json.loads(line)),
        )

    def call(self, act: Act) -> Told:
        """Let the client call a tool, and the server answer if it hears of it."""
        if self.ask(act):
            content = [{"type": "text", "text": self._stage.do(act)}]
            answer = {"jsonrpc": "2.0", "id": self._asked, "result": {"content": content}}
            self._proxy.from_server(json.dumps(answer).encode())
        result = self._to_client.pop()["result"]
        return heard(result["content"][0]["text"]) if result.get("isError") else MADE

    def ask(self, act: Act) -> bool:
        """Let the client call a tool; return whether the server hears of it."""
        self._asked += 1
        params = {"name": NAMES[type(act)], "arguments": arguments_of(act)}
        message = {"jsonrpc": "2.0", "id": self._asked, "method": "tools/call", "params": params}
        self._proxy.from_client(json.dumps(message).encode())
        heard_of = bool(self._to_server)
        self._to_server.clear()
        return heard_of


class OpenedClient(Opened):
    """A client with the servers that it has used so far."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._servers: dict[str, Server] = {}

    def call(self, act: Act) -> Told:
        """Call a tool."""
        return self._server(act).call(act)

    def interrupt(self, act: Act) -> None:
        """Call a tool of a server that never answers."""
        assert self._server(act).ask(act)

    def again(self) -> None:
        """Let the server go away."""
        self._leave(ConnectionError("the server is gone"))
        self._stage.retry()

    def close(self) -> None:
        """Leave."""
        self._leave(None)

    def _leave(self, error: Exception | None) -> None:
        for server in self._servers.values():
            server.recorder.close(error)
        self._servers.clear()

    def _server(self, act: Act) -> Server:
        name = SERVERS[type(act)]
        if name not in self._servers:
            self._servers[name] = Server(self._stage, name)
        return self._servers[name]


class ProxyDoor(McpDoor):
    """A client that works for itself."""

    def open(self, stage: Stage) -> Opened:
        """Let a client come."""
        if self.on_handoff:
            stage.offer()
        return OpenedClient(stage)


class ProxyDoorOnHandoff(ProxyDoor):
    """A client that works on what was handed off; it uses one server at a time."""

    agent = "worker"
    on_handoff = True
    cannot: ClassVar = {
        "grants by target": ProxyDoor.cannot["grants by target"],
        "one run": ProxyDoor.cannot["one run"],
        SPELLED: ProxyDoor.cannot[SPELLED],
        "what leaves us is held by its tier": AT_ONCE,
        "a grant does not cover the act": AT_ONCE,
    }


class TestProxy(DoorConformance):
    """The suite, for a client that works for itself."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return ProxyDoor()


class TestProxyOnHandoff(DoorConformance):
    """The suite, for a client that works on a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return ProxyDoorOnHandoff()


class ServerProcess:
    """The proxy as a client starts it, with a server behind it that is a process as well."""

    def __init__(self, stage: Stage, name: str) -> None:
        options = ["--name", name, "--by", PERSON, "--agent", stage.agent, *(["--enforce"] if stage.enforced else [])]
        server = [sys.executable, "-I", "-S", "-c", SERVER]
        self._asked = 0
        self._process = subprocess.Popen(
            [*PROGRAM, "mcp-proxy", *options, "--", *server],
            cwd=stage.directory,
            env=surroundings(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def call(self, act: Act) -> Told:
        """Call a tool and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked += 1
        params = {"name": NAMES[type(act)], "arguments": arguments_of(act)}
        message = {"jsonrpc": "2.0", "id": self._asked, "method": "tools/call", "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        result = json.loads(self._process.stdout.readline())["result"]
        return heard(result["content"][0]["text"]) if result.get("isError") else MADE

    def close(self) -> None:
        """Leave, and wait until the run is closed."""
        self._process.communicate(timeout=PATIENCE)


class OpenedClientProcess(Opened):
    """A client of servers that are processes."""

    def __init__(self, stage: Stage) -> None:
        _ = recording_of(stage.office)
        self._stage = stage
        self._servers: dict[str, ServerProcess] = {}

    def call(self, act: Act) -> Told:
        """Call a tool."""
        name = SERVERS[type(act)]
        if name not in self._servers:
            self._servers[name] = ServerProcess(self._stage, name)
        return self._servers[name].call(act)

    def close(self) -> None:
        """Leave."""
        for server in self._servers.values():
            server.close()


class ProxyProcessDoor(McpDoor):
    """The proxy as a process between a client and a server."""

    in_process = False

    def open(self, stage: Stage) -> Opened:
        """Let a client come."""
        return OpenedClientProcess(stage)


@pytest.mark.slow
class TestProxyProcess(DoorConformance):
    """A few rows of the suite, for the real proxy."""

    situations = FEW

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return ProxyProcessDoor()
