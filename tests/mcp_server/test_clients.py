"""The settings of the guide, run with the SDK's client; and `/mcp` of a real server, with all that keeps others out."""

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from batonpass.relay import Relay
from tests.integration.server_process import Served
from tests.unit.server.mcp.talk import MODES, Person, Talk, run

pytestmark = pytest.mark.slow

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "mcp-server.md").read_text(encoding="utf-8")
SETTINGS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)]
PROGRAMS = Path(sys.executable).parent
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Start a server."""
    server = Served(tmp_path_factory.mktemp("mcp"))
    yield server
    code, said = server.end()
    assert (0, True) == (code, said.rstrip().endswith("stopped"))


def a_token(served: Served, role: str, name: str = "ana") -> str:
    """Return a new token."""
    with Relay.open(served.directory / ".batonpass" / "ledger.db") as relay:
        everything = ["read:**", "write:src/**", "call:*"]
        return relay.admin.add_token(
            f"user:{name}",
            role,
            by="user:ana",
            lasts=timedelta(hours=1),
            may=everything if role == "agent" else (),
            may_delegate=everything if role == "agent" else (),
        ).text


def server_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the one server that a client's settings have."""
    (found,) = (settings.get("mcpServers") or settings["servers"]).values()
    return dict(found)


CLIENTS = ["claude", "cursor", "vscode"]
HERE = [one for one in SETTINGS if "command" in server_of(one)]
THERE = [one for one in SETTINGS if "url" in server_of(one)]


def filled(text: str, token: str) -> str:
    """Return a value of the settings as a client sends it: with the variable, or what its person typed."""
    return re.sub(r"\$\{(?:env:BATONPASS_TOKEN|BATONPASS_TOKEN|input:batonpass-token)\}", token, text)


@asynccontextmanager
async def over_http(
    url: str, headers: dict[str, str], mode: str = "auto", person: Person | None = None
) -> AsyncIterator[Talk]:
    """Open a conversation over HTTP."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=person) as client,
    ):
        yield Talk(client)


def with_token(token: str) -> dict[str, str]:
    """Return the header with a token."""
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("settings", HERE, ids=CLIENTS)
def test_the_settings_for_this_machine_work(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The client starts the program in the project, and it works on the ledger there, for the user."""
    server = server_of(settings)
    env = {**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "USER": "ana"}
    here = StdioServerParameters(command=server["command"], args=server["args"], env=env, cwd=tmp_path)

    async def talk() -> list[Any]:
        async with Client(stdio_client(here), mode="auto") as client:
            own = Talk(client)
            handle = (await own.done("start", intent="Fix it"))["run"]
            await own.done("close", run=handle)
            return [await own.done("show", id=handle.partition(".")[0]), (await client.list_tools()).tools]

    shown, tools = run(talk)

    assert ("user:ana", "completed", True) == (shown["principal"], shown["state"], len(tools) > 15)
    assert (tmp_path / ".batonpass" / "ledger.db").exists()


@pytest.mark.parametrize("settings", THERE, ids=CLIENTS)
def test_the_settings_for_a_server_work(served: Served, settings: dict[str, Any]) -> None:
    """With the token in the place that each client has for it."""
    server = server_of(settings)
    token = a_token(served, "agent")
    headers = {name: filled(text, token) for name, text in server["headers"].items()}
    url = server["url"].replace(":7420", f":{served.port}")

    async def talk() -> Any:  # noqa: ANN401 - any JSON
        async with over_http(url, headers) as own:
            return await own.done("start", intent="Fix it")

    assert (f"http://127.0.0.1:{served.port}/mcp", "enforced") == (url, run(talk)["grant"]["mode"])


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_handoff_with_a_hold_over_http(served: Served, mode: str) -> None:
    """The agent's client decides nothing; the operator's asks its person; then the work goes on and is verified."""
    url = f"http://127.0.0.1:{served.port}/mcp"
    agent, operator = with_token(a_token(served, "agent")), with_token(a_token(served, "operator", "olga"))
    person, nobody = Person(content={"reason": "seen"}), Person()

    async def talk() -> list[Any]:
        async with over_http(url, agent, mode, nobody) as own:
            lead = (await own.done("start", intent=f"Fix it {mode}"))["run"]
            task = {"to": "editor", "task": "Edit it", "may": ["write:src/**"], "hold": True}
            handoff = (await own.done("hand_off", run=lead, **task))["id"]
            held = await own.code("accept", run=lead, handoff=handoff)
            async with over_http(url, operator, mode, person) as other:
                await other.done("decide", id=handoff)
            child = (await own.done("accept", run=lead, handoff=handoff))["run"]
            denied = await own.code("begin_call", run=child, tool="write_file", target="etc/x")
            call = (await own.done("begin_call", run=child, tool="write_file", target="src/a.py", reversible=True))[
                "call"
            ]
            await own.done("finish_call", run=child, call=call, result="ok")
            await own.done("report", run=child, result="done")
            await own.done("close", run=child)
            state = (await own.done("result", run=lead, handoff=handoff))["state"]
            judged = (await own.done("judge", run=lead, handoff=handoff, holds=True, words="I read it"))["state"]
            return [held, denied, state, judged]

    assert ["handoff.held", "grant.denied", "completed", "verified"] == run(talk)
    assert (1, []) == (len(person.asked), nobody.asked)


def test_who_is_not_let_in_gets_nothing_at_mcp_either(served: Served) -> None:
    """No token, a wrong one, a name that points here, a page of another site: as on every other route."""
    url, token = f"http://127.0.0.1:{served.port}/mcp", a_token(served, "agent")
    sent: dict[str, dict[str, str]] = {
        "with a token": with_token(token),
        "without a token": {},
        "with a wrong token": with_token(token[:-4] + "AAAA"),
        "as another host": {**with_token(token), "Host": f"evil.example:{served.port}"},
        "from another page": {**with_token(token), "Origin": "https://evil.example"},
    }
    accepts = {"Accept": "application/json, text/event-stream"}
    statuses = {
        name: httpx2.post(url, json=HELLO, headers={**accepts, **headers}).status_code for name, headers in sent.items()
    }

    assert {
        "with a token": 200,
        "without a token": 401,
        "with a wrong token": 401,
        "as another host": 421,
        "from another page": 403,
    } == statuses


def test_a_session_is_its_tokens_alone_and_ends_with_it(served: Served) -> None:
    """Another token is told that there is no such session, and a revoked one that it is not let in."""
    url, token, other = f"http://127.0.0.1:{served.port}/mcp", a_token(served, "agent"), a_token(served, "admin", "ben")
    accepts = {"Accept": "application/json, text/event-stream"}
    opened = httpx2.post(url, json=HELLO, headers={**accepts, **with_token(token)})
    session = {**accepts, "Mcp-Session-Id": opened.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    httpx2.post(
        url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers={**session, **with_token(token)}
    )
    own = httpx2.post(url, json=ask, headers={**session, **with_token(token)})
    theirs = httpx2.post(url, json=ask, headers={**session, **with_token(other)})
    with Relay.open(served.directory / ".batonpass" / "ledger.db") as relay:
        relay.admin.revoke_token(token.partition(".")[0], by="user:ana", reason="lost")
    after = httpx2.post(url, json=ask, headers={**session, **with_token(token)})

    assert (200, 200, 404, 401) == (opened.status_code, own.status_code, theirs.status_code, after.status_code)


def test_a_request_that_is_too_large_is_refused(served: Served) -> None:
    """Before it is read."""
    url, token = f"http://127.0.0.1:{served.port}/mcp", a_token(served, "agent")
    huge = {**HELLO, "params": {"x": "y" * (9 * 1024 * 1024)}}
    accepts = {"Accept": "application/json, text/event-stream"}

    assert 413 == httpx2.post(url, json=huge, headers={**accepts, **with_token(token)}).status_code


def test_an_open_stream_does_not_keep_the_server_from_ending(tmp_path: Path) -> None:
    """A client that listens is cut off when the server ends, and the server ends with success."""
    server = Served(tmp_path)
    token = a_token(server, "agent")

    async def talk() -> int:
        async with over_http(f"http://127.0.0.1:{server.port}/mcp", with_token(token), "legacy") as own:
            await own.client.list_tools()
            with anyio.CancelScope(shield=True):
                code, _ = await anyio.to_thread.run_sync(server.end)
            return code

    assert 0 == run(talk)


def test_lines_that_are_no_messages_end_nothing(tmp_path: Path) -> None:
    """Over stdio, junk is answered or passed over, and what comes after it is served."""
    said = [b"junk", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', json.dumps(HELLO | {"id": 7}).encode()]
    done = subprocess.run(
        [str(PROGRAMS / "batonpass"), "mcp"],
        cwd=tmp_path,
        input=b"\n".join(said) + b"\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]

    assert (0, True) == (done.returncode, any(one.get("id") == 7 and "result" in one for one in answers))
    assert not (tmp_path / ".batonpass").exists()
