"""`/mcp` as a mount: loaded with the first request, behind the boundary, and ended with the server."""

from typing import Any

import httpx2

from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.mcp.http_mount import McpMount
from tests.unit.server.conftest import House
from tests.unit.server.mcp.talk import NoFiles, run

HERE = "http://127.0.0.1:7420"


def asked(method: str, number: int, **params: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """Return a request of revision 2026-07-28."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}


def headers(token: str | None, method: str, name: str | None = None) -> dict[str, str]:
    """Return what such a request is sent with."""
    sent = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
    }
    sent |= {} if name is None else {"mcp-name": name}
    return sent if token is None else {**sent, "authorization": f"Bearer {token}"}


def test_the_mount_lets_in_who_has_a_token_and_nobody_else(house: House) -> None:
    """Each request is looked at; a wrong host and another page get no further than on any other route."""
    mount = McpMount(house.plane, NoFiles())
    app = make_app(house.plane, hosts=hosts_for("127.0.0.1"), mounts=[mount.route], lifespans=[mount.lifespan])
    token = house.everybody["agent"]
    body, call = asked("tools/list", 1), asked("tools/call", 2, name="start", arguments={"intent": "Fix it"})

    async def talk() -> list[Any]:
        transport = httpx2.ASGITransport(app=app)
        async with mount.lifespan(), httpx2.AsyncClient(transport=transport, base_url=HERE) as client:
            good = headers(token, "tools/list")
            answers = [
                await client.post("/mcp", json=body, headers=good),
                await client.post("/mcp", json=body, headers=headers(None, "tools/list")),
                await client.post("/mcp", json=body, headers={**good, "host": "evil.example"}),
                await client.post("/mcp", json=body, headers={**good, "origin": "https://evil.example"}),
                await client.post("/mcp", json=call, headers=headers(token, "tools/call", "start")),
            ]
            return [(one.status_code, one.text) for one in answers]

    told = run(talk)

    assert [200, 401, 421, 403, 200] == [status for status, _ in told]
    assert ("hand_off" in told[0][1], "access.unknown_token" in told[1][1], '"run":"run_' in told[4][1]) == (True,) * 3


def test_a_mount_that_nobody_asked_ends_at_once(house: House) -> None:
    """Nothing was loaded, and nothing has to be ended."""
    mount = McpMount(house.plane)

    async def talk() -> bool:
        async with mount.lifespan():
            return mount.is_loaded

    assert not run(talk)
