"""Servers that misbehave, processes that die, and what is on record then."""

import os
import signal
import time
from pathlib import Path

import pytest

from batonpass.model.bodies.body import RunClosed, RunRecorded
from batonpass.model.ledger.run import RunState
from batonpass.relay import Relay
from tests.mcp.ledgers import bodies_in, calls_in
from tests.mcp.servers import STRANGE, proxied
from tests.mcp.wire import PATIENCE, Wire

pytestmark = pytest.mark.slow


@pytest.fixture
def strange(tmp_path: Path) -> list[str]:
    """Return the command of the strange server behind the proxy; its ledger is in the directory."""
    (tmp_path / ".batonpass").mkdir()
    return proxied(STRANGE, "--name", "strange")


def recorded(directory: Path) -> Relay:
    """Open what was recorded."""
    return Relay.open(f"sqlite:///{directory}/.batonpass/ledger.db", create=False)


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    for _ in range(PATIENCE * 100):
        if path.exists():
            return
        time.sleep(0.01)
    raise TimeoutError(path)


def wait_until_gone(process: int) -> None:
    """Wait until a process is there no more."""
    for _ in range(PATIENCE * 100):
        if not Path(f"/proc/{process}").exists():
            return
        time.sleep(0.01)
    raise TimeoutError(process)


def child_of(process: int) -> int:
    """Return the server's process, which is the proxy's only child."""
    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    return int(child)


def test_trouble_of_a_server_does_not_hurt_the_session(strange: list[str], tmp_path: Path) -> None:
    """Ten megabytes, lines that are no JSON, answers that nobody asked for and names with control characters pass."""
    with Wire(strange, tmp_path) as wire:
        wire.ask("initialize", protocolVersion="2025-11-25", clientInfo={"name": "tester"}, capabilities={})
        huge = wire.call("huge")
        garbage = wire.call("garbage")
        name = wire.ask("tools/list")["result"]["tools"][1]["name"]
        wire.ask("tools/list")
        strangest = wire.call(name)
        code, _ = wire.leave()

    with recorded(tmp_path) as relay:
        calls, bodies = calls_in(relay), bodies_in(relay)
        relay.verify()
    assert (10_000_000, "done", 0) == (
        len(huge["result"]["content"][0]["text"]),
        garbage["result"]["content"][0]["text"],
        code,
    )
    assert (["completed"] * 3, "a\x00\x1b[2Jb {}") == (
        [outcome for _, outcome in calls],
        strangest["result"]["content"][0]["text"],
    )
    # The description of one tool changed between two lists: both are kept.
    assert 2 == len([body for body in bodies if isinstance(body, RunRecorded)])


def test_lines_that_are_no_messages_reach_the_client_as_they_are(strange: list[str], tmp_path: Path) -> None:
    """A client knows best what to do about them: it would get them without us."""
    with Wire(strange, tmp_path) as wire:
        wire.begin("tools/call", name="garbage", arguments={})
        lines = [wire.receive_line() for _ in range(3)]

    assert [b'{"jsonrpc": "2.0", "id":\n', b"LOG: hello\n", b"[1, 2\n"] == lines


def test_a_server_that_is_killed_leaves_its_call_in_doubt(strange: list[str], tmp_path: Path) -> None:
    """The client gets an error that says so, the proxy ends, and the run is closed as failed."""
    with Wire(strange, tmp_path) as wire:
        wire.begin("tools/call", name="wait", arguments={"started": "started"})
        wait_for(tmp_path / "started")
        os.kill(child_of(wire.process.pid), signal.SIGKILL)
        answer = wire.receive()
        code, words = wire.leave()

    with recorded(tmp_path) as relay:
        calls, bodies = calls_in(relay), bodies_in(relay)
    assert (
        "the server was ended by signal 9; whether the call was made is not known",
        3,
        "batonpass mcp-proxy: the server was ended by signal 9\n",
        [("mcp__strange__wait", None)],
        ["failed"],
    ) == (
        answer["error"]["message"],
        code,
        words,
        calls,
        [str(body.outcome) for body in bodies if isinstance(body, RunClosed)],
    )


def test_a_server_that_leaves_is_told_with_its_exit_code(strange: list[str], tmp_path: Path) -> None:
    """Nothing was called, so nothing is recorded; the client's next request fails cleanly or finds nobody."""
    with Wire(strange, tmp_path) as wire:
        wire.begin("logging/setLevel", level="info")
        answer = wire.receive()
        code, _ = wire.leave()

    assert ("the server ended with exit code 7", 3, False) == (
        answer["error"]["message"],
        code,
        (tmp_path / ".batonpass" / "ledger.db").exists(),
    )


def test_a_proxy_that_is_killed_takes_its_server_along(strange: list[str], tmp_path: Path) -> None:
    """The call is in doubt, the run stays open, the record is whole, and no server is left behind."""
    with Wire(strange, tmp_path) as wire:
        wire.call("look")
        server = child_of(wire.process.pid)
        wire.begin("tools/call", name="wait", arguments={"started": "started"})
        wait_for(tmp_path / "started")
        wire.kill()
        assert b"" == wire.receive_line()
        wait_until_gone(server)

    with recorded(tmp_path) as relay, relay.store.view() as view:
        calls = calls_in(relay)
        states = [run.state for run in view.find_runs()]
        relay.verify()
    assert ([("mcp__strange__look", "completed"), ("mcp__strange__wait", None)], [RunState.OPEN]) == (calls, states)


def test_a_client_that_is_gone_ends_everything(strange: list[str], tmp_path: Path) -> None:
    """When its input ends, the proxy ends a server that does not end by itself, and closes the run."""
    with Wire(strange, tmp_path) as wire:
        wire.begin("tools/call", name="stay", arguments={"started": "started"})
        wait_for(tmp_path / "started")
        server = child_of(wire.process.pid)
        code, _ = wire.leave()

    with recorded(tmp_path) as relay:
        bodies = bodies_in(relay)
    assert (0, False, ["completed"]) == (
        code,
        Path(f"/proc/{server}").exists(),
        [str(body.outcome) for body in bodies if isinstance(body, RunClosed)],
    )


def test_a_signal_ends_everything_in_order(strange: list[str], tmp_path: Path) -> None:
    """Clients end their servers with SIGTERM: the run is closed all the same."""
    with Wire(strange, tmp_path) as wire:
        wire.call("look")
        wire.process.send_signal(signal.SIGTERM)
        code = wire.process.wait(PATIENCE)

    with recorded(tmp_path) as relay:
        bodies = bodies_in(relay)
    assert (0, 1) == (code, len([body for body in bodies if isinstance(body, RunClosed)]))
