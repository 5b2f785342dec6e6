"""Standing between a client and a server that is a process of its own."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from batonpass.adapters.mcp.messages.line_pipes import Outlet, read_lines
from batonpass.adapters.mcp.proxy.backend import StdioBackend
from batonpass.adapters.mcp.proxy.call_decision import Guard
from batonpass.adapters.mcp.proxy.service import ServerGoneError, serve
from batonpass.adapters.mcp.server_declaration import Server
from batonpass.errors import InvalidValueError
from tests.unit.adapters.mcp.stage import Stage

ECHO = """
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    if said["method"] == "ping":
        sys.exit(4)
    print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": {"content": []}}), flush=True)
"""
DEAF = "import os, sys, time; os.close(0); print('{}', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}', flush=True); time.sleep(600)"
)

Lines = Callable[[], dict[str, Any]]


def between(
    program: str, play: Callable[[Outlet, Lines], None], ended: Callable[[], None] = lambda: None
) -> tuple[Stage, ServerGoneError | None]:
    """Let a client play its part in a thread, with a server that runs a program; return the record, and the end."""
    stage = Stage()
    from_client, to_proxy = os.pipe()
    from_proxy, to_client = os.pipe()
    found = read_lines(from_proxy)

    def client() -> None:
        try:
            play(Outlet(to_proxy), lambda: dict(json.loads(next(found))))
        finally:
            os.close(to_proxy)

    player = threading.Thread(target=client)
    player.start()
    backend = StdioBackend([sys.executable, "-I", "-S", "-c", program], grace=timedelta(milliseconds=200))
    recorder = stage.recorder
    gone = serve(Server(name="shop"), backend, recorder, Guard(recorder), stdin=from_client, stdout=to_client)
    ended()
    player.join()
    for descriptor in (from_client, from_proxy, to_client):
        os.close(descriptor)
    return stage, gone


def call(identifier: int, method: str = "tools/call") -> bytes:
    """Return a request as a line."""
    params = {"name": "buy", "arguments": {}}
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}).encode()


def test_a_session_ends_with_its_client() -> None:
    """A call goes there and back, and the run is closed."""

    def play(outlet: Outlet, receive: Lines) -> None:
        outlet.send(call(1))
        assert 1 == receive()["id"]

    stage, gone = between(ECHO, play)

    assert (["run.started", "tool.requested", "tool.completed", "run.closed"], None) == (stage.kinds(), gone)


def test_a_server_that_ends_first_is_said_to_have() -> None:
    """With its exit code, to the client and to whoever started us."""

    def play(outlet: Outlet, receive: Lines) -> None:
        outlet.send(call(1, "ping"))
        assert "the server ended with exit code 4" == receive()["error"]["message"]

    _, gone = between(ECHO, play)

    assert "the server ended with exit code 4" == str(gone)


def test_a_server_that_takes_nothing_any_more_is_ended() -> None:
    """It may live, but nobody can use it: the client's open request fails, in order."""

    def play(outlet: Outlet, receive: Lines) -> None:
        receive()
        outlet.send(call(1))
        assert -32000 == receive()["error"]["code"]

    stage, gone = between(DEAF, play)

    assert ("the server was ended by signal 15", "run.closed") == (str(gone), stage.kinds()[-1])


def test_a_server_that_will_not_end_is_ended() -> None:
    """After a while, by what nobody can ignore."""
    _, gone = between(STUBBORN, lambda _, receive: receive().clear())

    assert gone is None


def test_a_signal_closes_the_run() -> None:
    """As often as it comes, and although the client is still there."""
    before = signal.getsignal(signal.SIGTERM)

    def play(outlet: Outlet, receive: Lines) -> None:
        outlet.send(call(1))
        receive()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert closed.wait(60)

    closed = threading.Event()
    stage, gone = between(ECHO, play, closed.set)

    assert ("run.closed", None, before) == (stage.kinds()[-1], gone, signal.getsignal(signal.SIGTERM))


def test_a_server_that_is_not_there_is_said_to_be() -> None:
    """Before anything else happens."""
    with pytest.raises(InvalidValueError, match="/no/such/server cannot be started"):
        StdioBackend(["/no/such/server"])
