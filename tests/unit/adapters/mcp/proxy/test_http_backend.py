"""What a message says in its headers as well, and what cannot be sent by HTTP."""

import json

from batonpass.adapters.mcp.messages.message import CLIENT_INFO, VERSION, Message
from batonpass.adapters.mcp.proxy.http_backend import HttpBackend, Stamps

SCHEMA = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


def message(method: str, **params: object) -> Message:
    """Return a request."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Message(json.dumps(body).encode(), body)


def answer(**result: object) -> bytes:
    """Return an answer as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def test_after_the_handshake_each_message_names_the_revision() -> None:
    """Before it there is none to name."""
    stamps = Stamps()
    before = stamps.headers(message("initialize"))

    stamps.learn(answer(protocolVersion="2025-11-25"))

    assert (None, {"mcp-protocol-version": "2025-11-25"}) == (before, stamps.headers(message("ping")))


def test_a_message_without_a_handshake_mirrors_what_it_asks_for() -> None:
    """Method, name, and the arguments that the tool's schema puts into headers; what is no plain text is encoded."""
    stamps = Stamps()
    meta = {VERSION: "2026-07-28", CLIENT_INFO: {"name": "x"}}
    stamps.learn(answer(tools=[{"name": "tëa", "inputSchema": SCHEMA}, "no tool"]))

    headers = stamps.headers(message("tools/call", name="tëa", arguments={"region": "eu", "more": 1}, _meta=meta))
    listed = stamps.headers(message("tools/list", _meta=meta))

    assert {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?dMOrYQ==?=",
        "Mcp-Param-Region": "eu",
    } == headers
    assert {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"} == listed


def test_a_number_that_would_be_rounded_on_its_way_is_not_sent() -> None:
    """What is judged and recorded is what the server gets, or nothing; each message of a line is told for itself."""
    backend = HttpBackend("http://127.0.0.1:9/mcp", {})
    line = b'[{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"n": 1e400}}, {"id": 2}]'

    backend.send(line)
    told = [json.loads(next(backend.lines())) for _ in range(2)]
    backend.close()

    assert [(1, -32000), (2, -32000)] == [(each["id"], each["error"]["code"]) for each in told]
