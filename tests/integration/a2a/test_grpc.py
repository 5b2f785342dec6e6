"""A2A over gRPC: a real server and the official client, each in a process of its own."""

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batonpass.dispatch.worker import Worker
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import AgentId
from batonpass.relay import Relay
from tests.integration.a2a.world import DAY, PATIENCE, WHEN, until
from tests.integration.certificates import make_certificate
from tests.integration.server_process import PROGRAM, Served

APP = """
from pathlib import Path
from batonpass import Card, Relay

home = Path(__file__).parent / ".batonpass"
relay = Relay.open(home / "ledger.db", home=home)
for name in ("echo", "idle", "open"):
    relay.introduce(Card(agent=name, description=name, ceiling=["read:**"], public=name == "open"))
"""
MAY = ("read:**",)
HERE = Path(__file__).parents[3]


class GrpcWorld:
    """A server with agents, and the ledger that it serves."""

    def __init__(self, served: Served, relay: Relay, **given: str) -> None:
        self.served = served
        self.relay = relay
        self.given = given

    def token(self, who: str, role: str = "agent", *agents: str) -> str:
        """Return a token of somebody."""
        return self.relay.admin.add_token(
            who, role, by="user:root", lasts=DAY, agents=agents, may=MAY, may_delegate=MAY
        ).text

    def begin(self, act: str, **given: Any) -> "subprocess.Popen[str]":  # noqa: ANN401 - JSON
        """Let a caller do something, in a process of its own."""
        said = {"address": self.served.address.read_text().strip(), **self.given, **given}
        return subprocess.Popen(
            [sys.executable, "-m", "tests.integration.a2a.grpc_caller", act, json.dumps(said)],
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def at_work(self, *agents: str) -> Iterator[None]:
        """Let a worker work for these agents until the block ends."""
        stop = threading.Event()
        worker = Worker(self.relay, name="worker:test", agents=[AgentId(agent) for agent in agents])
        thread = threading.Thread(target=worker.run_until, args=(stop,), kwargs={"poll": timedelta(milliseconds=50)})
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def ended(caller: "subprocess.Popen[str]") -> dict[str, Any]:
    """Return what a caller saw."""
    out, err = caller.communicate(timeout=2 * PATIENCE)
    assert 0 == caller.returncode, err
    seen: dict[str, Any] = json.loads(out.splitlines()[-1])
    return seen


@contextmanager
def a_grpc_world(home: Path, *options: str, **given: str) -> Iterator[GrpcWorld]:
    """Serve agents, and register the same agents here for a worker."""
    (home / "app.py").write_text(APP, encoding="utf-8")
    served = Served(home, "--app", "app:relay", "--grpc-port", "0", *options)
    place = home / ".batonpass"
    try:
        with Relay.open(place / "ledger.db", home=place, keys_in_files=True, work_tree=home) as relay:
            for agent in ("echo", "idle", "open"):
                relay.register(agent, _say)
            yield GrpcWorld(served, relay, **given)
    finally:
        if served.process.poll() is None:
            served.process.kill()
            served.process.communicate()


def _say(work: LiveRun) -> str:
    words = work.read("request.txt").decode()
    _, waits, gate = words.partition(WHEN)
    if waits:
        until(Path(gate).exists)
    return f"{words} {work.label.integrity}"


def grpc_address(world: GrpcWorld) -> str:
    """Return where the card says that gRPC is."""
    _, card = world.served.get("/a2a/agents/echo/.well-known/agent-card.json", world.token("service:looks"))
    found = [one for one in card["supportedInterfaces"] if one["protocolBinding"] == "GRPC"]
    assert ["echo"] == [one["tenant"] for one in found]
    return str(found[0]["url"])


class Asked:
    """A server, and what a caller saw that asked it everything."""

    def __init__(self, world: GrpcWorld, seen: dict[str, Any]) -> None:
        self.world = world
        self.seen = seen


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Serve three agents, and let a caller ask everything, once for the tests here."""
    with a_grpc_world(tmp_path_factory.mktemp("grpc")) as world, world.at_work("echo"):
        callers = {
            "another": world.token("service:another"),
            "narrow": world.token("service:narrow", "agent", "idle"),
            "operator": world.token("user:op", "operator"),
            "auditor": world.token("user:aud", "auditor"),
            "admin": world.token("user:adm", "admin"),
        }
        tokens = {"token": world.token("service:shop"), "other": callers["another"]}
        yield Asked(world, ended(world.begin("everything", grpc=grpc_address(world), callers=callers, **tokens)))


@pytest.mark.slow
def test_a_task_is_the_same_as_over_http(asked: Asked) -> None:
    """It is sent, listed, told about and cancelled; another caller is told that there is none."""
    seen = asked.seen["task"]
    known = asked.world.relay.handoff(seen["id"])

    assert ("TASK_STATE_COMPLETED", "Ship 3 boxes external") == (seen["state"], seen["words"])
    assert (["Ship 3 boxes"], True) == (seen["history"], seen["listed"])
    assert ("external-to-agent", "echo") == (known.baton().relation, known.info().to)
    assert ["https://93.184.215.14/hook", "https://93.184.215.14/hook", 0] == seen["push"]
    assert ["TASK_STATE_CANCELED", True] == seen["cancelled"]
    assert [True, True, True] == seen["hidden"]


@pytest.mark.slow
def test_what_happens_is_streamed_and_can_be_followed_again(asked: Asked) -> None:
    """A task first, then its changes until it is over."""
    seen = asked.seen["stream"]

    assert ("task", "TASK_STATE_COMPLETED", "TASK_STATE_COMPLETED") == (seen["told"][0], seen["last"], seen["again"])
    assert "artifact_update" in seen["told"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("who", "told"),
    [
        ("nobody", "UNAUTHENTICATED: [access.unknown_token]"),
        ("operator", "PERMISSION_DENIED: [access.role]"),
        ("auditor", "PERMISSION_DENIED: [access.role]"),
        ("admin", "PERMISSION_DENIED: [access.role]"),
        ("narrow", "PERMISSION_DENIED: [access.out_of_reach]"),
    ],
)
def test_every_method_refuses_whom_http_refuses(asked: Asked, who: str, told: str) -> None:
    """Whoever has no token, a token of another role, or one for another agent; the reason is a sentence."""
    table = asked.seen["refusals"]["table"][who]

    assert {told} == {re.sub(r": .* \[", ": [", one) for one in table.values()}
    assert 11 == len(table)


@pytest.mark.slow
def test_somebody_elses_task_is_not_found_by_any_method(asked: Asked) -> None:
    """Except those that name none: they list and tell what is the caller's own."""
    table = asked.seen["refusals"]["table"]["another"]
    own = {name: table.pop(name) for name in ("ListTasks", "GetExtendedAgentCard")}

    assert {"NOT_FOUND: Task not found"} == set(table.values())
    assert {
        "ListTasks": "OK",
        "GetExtendedAgentCard": "FAILED_PRECONDITION: Everybody who is let in gets the same card",
    } == own


@pytest.mark.slow
def test_versions_agents_sizes_and_strangers_are_looked_at(asked: Asked) -> None:
    """The SDK looks at no version here; a request without a tenant asks the first agent; strangers are limited."""
    seen = asked.seen["refusals"]
    none, old, patched = seen["version"]

    assert none.startswith("UNIMPLEMENTED: A2A version '0.3' is not supported")
    assert (none, "OK") == (old, patched)
    assert ("NOT_FOUND: no agent 'nobody' in this ledger [id.not_found]", "OK") == (seen["agent"], seen["first"])
    assert seen["large"].startswith("RESOURCE_EXHAUSTED: ")
    assert ("OK", "FAILED_PRECONDITION: Without a token there are no push notifications") == (
        seen["public"],
        seen["push"],
    )
    assert seen["often"].startswith("RESOURCE_EXHAUSTED: too many requests")


@pytest.mark.slow
def test_a_server_that_ends_finishes_what_is_under_way(tmp_path: Path) -> None:
    """After SIGTERM, over TLS: whoever waits gets its answer, and whoever follows a task is told to come again."""
    certificate, key = make_certificate(tmp_path, "localhost")
    options = ("--host", "localhost", "--certificate", str(certificate), "--key", str(key))
    with a_grpc_world(tmp_path, *options, certificate=str(certificate)) as world:
        caller = world.begin("drain", token=world.token("service:shop"))
        assert caller.stdout is not None
        assert "ready\n" == caller.stdout.readline()
        world.served.process.terminate()
        with world.at_work("idle"):
            seen = ended(caller)
        _, said = world.served.process.communicate(timeout=PATIENCE)

    assert "TASK_STATE_COMPLETED" == seen["state"]
    assert "the server stops; subscribe to the task again" in seen["cut"]
    assert (0, "stopped") == (world.served.process.returncode, said.splitlines()[-1])


@pytest.mark.slow
def test_a_taken_port_gets_one_sentence(tmp_path: Path) -> None:
    """It names the port and what to do; and a machine that others reach takes a certificate, here as well."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = [
            subprocess.run(
                [PROGRAM, "serve", "--port", "0", *options],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            for options in (("--grpc-port", str(port)), ("--host", "0.0.0.0", "--grpc-port", "0"))  # noqa: S104 - refused
        ]

    assert [(1, 1), (1, 1)] == [(one.returncode, one.stderr.count("\n")) for one in told]
    assert f"port {port} is taken; give another with --grpc-port" in told[0].stderr
    assert "tokens would cross the network unencrypted" in told[1].stderr
