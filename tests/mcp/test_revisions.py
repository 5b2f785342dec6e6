"""Every revision of the protocol, on stdio and by HTTP, watched and enforced, with the SDK's own client and server."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, stdio_client, types
from mcp.client.context import ClientRequestContext

from batonpass.model.bodies.body import ToolHeld
from batonpass.relay import Relay
from tests.mcp.ledgers import bodies_in, calls_in
from tests.mcp.servers import PROGRAM, TALKER, node_server, proxied, python_server, reached, surroundings
from tests.mcp.wire import Wire

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

HELLO: dict[str, object] = {
    "protocolVersion": "2025-11-25",
    "clientInfo": {"name": "tester", "version": "1"},
    "capabilities": {},
}
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Return where a server is reached by HTTP."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    with subprocess.Popen([*TALKER, str(port)], env=surroundings(), stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"Uvicorn running" in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


async def visit(command: list[str], directory: Path, mode: str) -> list[Any]:
    """Do what can be done with the talking server, and return all that is seen, the questions to the person first."""
    asked: list[str] = []
    steps: list[float] = []

    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001 - the SDK's signature
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"sure": True} if "Really" in params.message else {})

    async def step(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001 - the SDK's signature
        steps.append(progress)

    async with Client(stdio_client(reached(command, directory)), mode=mode, elicitation_callback=elicit) as client:
        with anyio.fail_after(60):
            seen: list[Any] = [
                client.protocol_version,
                client.server_info,
                await client.list_tools(),
                await client.read_resource("shop://menu"),
                await client.call_tool("buy", {"what": "tea"}),
                await client.call_tool("give", {"what": "tea"}),
                await client.call_tool("count", {"to": 3}, progress_callback=step),
                await client.call_tool("no-such-tool", {}),
            ]
    return [asked, steps, *(each if isinstance(each, str) else each.model_dump(mode="json") for each in seen)]


def recorded(directory: Path) -> Relay:
    """Open what was recorded."""
    return Relay.open(f"sqlite:///{directory}/.batonpass/ledger.db", create=False)


OUTCOMES = [
    ("mcp-resource__talker", "completed"),
    ("mcp__talker__buy", "completed"),
    ("mcp__talker__give", "completed"),
    ("mcp__talker__count", "completed"),
    ("mcp__talker__no-such-tool", "failed"),
]


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Return what is seen without the proxy, by era."""
    return {mode: anyio.run(visit, TALKER, tmp_path_factory.mktemp("direct"), mode) for mode in MODES}


@pytest.mark.parametrize("mode", MODES)
def test_both_eras_pass_on_stdio(tmp_path: Path, direct: dict[str, list[Any]], mode: str) -> None:
    """The client sees the same, questions of the server included, and each call is one call on record."""
    through = anyio.run(visit, proxied(TALKER, "--name", "talker"), tmp_path, mode)

    with recorded(tmp_path) as relay:
        calls = calls_in(relay)
    assert (direct[mode], MODES[mode], ["Really tea?"], OUTCOMES) == (through, through[2], through[0], calls)


@pytest.mark.parametrize("mode", MODES)
def test_both_eras_pass_by_http(tmp_path: Path, direct: dict[str, list[Any]], address: str, mode: str) -> None:
    """A server behind an address looks as one that was started, headers and sessions included."""
    command = [str(PROGRAM), "mcp-proxy", "--url", address, "--name", "talker"]
    through = anyio.run(visit, command, tmp_path, mode)

    with recorded(tmp_path) as relay:
        calls = calls_in(relay)
    assert (direct[mode], OUTCOMES) == (through, calls)


@pytest.mark.parametrize("mode", MODES)
def test_an_enforced_proxy_asks_the_person_in_both_eras(tmp_path: Path, mode: str) -> None:
    """Each held call is asked about once, in the protocol's own way, and made after the yes."""
    seen = anyio.run(visit, proxied(TALKER, "--name", "talker", "--enforce"), tmp_path, mode)

    with recorded(tmp_path) as relay:
        calls = calls_in(relay)
        held = [body.tool for body in bodies_in(relay) if isinstance(body, ToolHeld)]
        relay.verify()
    assert (OUTCOMES, [name for name, _ in OUTCOMES[1:]], 5) == (calls, held, len(seen[0]))


def test_a_server_that_is_not_there_fails_each_request(tmp_path: Path) -> None:
    """By HTTP nobody is started, so the first request finds out, and the client learns it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    with Wire([str(PROGRAM), "mcp-proxy", "--url", f"http://127.0.0.1:{port}/mcp"], tmp_path) as wire:
        answer = wire.ask("ping")
        code, words = wire.leave()

    assert (-32000, 3, True) == (answer["error"]["code"], code, "the connection to the server ended" in words)


@pytest.mark.parametrize(
    ("server", "tool", "arguments", "part"),
    [
        pytest.param(
            "mcp-server-time",
            "convert_time",
            {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
            "+9.0h",
            id="time",
        ),
        pytest.param("mcp-server-git", "git_status", {"repo_path": "."}, "notes.txt", id="git"),
    ],
)
def test_servers_that_others_wrote_work_behind_it(
    tmp_path: Path, server: str, tool: str, arguments: dict[str, str], part: str
) -> None:
    """Servers from the package index answer through the proxy, and their calls are on record."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "notes.txt").touch()
    with Wire(proxied(python_server(server)), tmp_path) as wire:
        wire.ask("initialize", **HELLO)
        wire.send({"method": "notifications/initialized"})
        answer = wire.call(tool, **arguments)

    with recorded(tmp_path) as relay:
        calls = calls_in(relay)
    assert (True, [(f"mcp__{server}__{tool}", "completed")]) == (part in str(answer["result"]["content"]), calls)


def test_a_line_that_a_server_wrote_knows_who_asked_for_it(tmp_path: Path) -> None:
    """What the reference server for files changes here is seen here, and blame leads to the client and its user."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with Wire(proxied(node_server("filesystem", str(tmp_path)), "--name", "files"), tmp_path) as wire:
        wire.ask("initialize", **HELLO)
        wire.send({"method": "notifications/initialized"})
        wire.call("write_file", path=str(tmp_path / "notes.txt"), content="tea\n")
    told = subprocess.run(
        [str(PROGRAM), "blame", "notes.txt:1"],
        cwd=tmp_path,
        env=surroundings(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (0, True, True) == (told.returncode, told.stdout.startswith("tester "), "ana" in told.stdout), told
