"""Who worked on a task before, as its caller says: believed under a pinned key, and counted in any case."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace

from batonpass.dispatch.egress_rule import EgressRule
from batonpass.handoff.history.travelled_lineage import URI, TravelledLineage, sign_lineage
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.baton.items import Artifact
from batonpass.model.ledger.run import RunState
from batonpass.model.policy.listed_place import read_listed
from batonpass.relay import Relay, signer_of
from tests.integration.a2a.world import World, a_card, a_world, until

CARDS = {"echo": a_card("echo", description="Echoes.", ceiling=("read:**",))}


def echo(work: LiveRun) -> str:
    """Say what it may do."""
    return " ".join(one.text for one in work.grant().may or ())


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    """Return another relay."""
    home = tmp_path_factory.mktemp("peer")
    with Relay.open(home / "ledger.db", home=home) as relay:
        yield relay


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, peer: Relay) -> Iterator[World]:
    """Serve an agent; the other relay is pinned, and notifications may go to this machine."""
    home, peers = tmp_path_factory.mktemp("a2a"), {signer_of(peer).public_key: "friend"}
    egress = EgressRule([read_listed("127.0.0.1")])
    with a_world(home, {"echo": echo}, CARDS, peers=peers, egress=egress) as served:
        yield served


def lineage(world: World, message: str, **given: Any) -> TravelledLineage:  # noqa: ANN401 - its fields
    """Return what a peer says of a message."""
    said = TravelledLineage(
        message=message,
        audience=world.url_of("echo"),
        at=datetime.now(UTC).isoformat(),
        depth=3,
        root="run_x",
        handoff="handoff_x",
        principal="user:far",
        tainted=False,
        may=("read:src/**",),
    )
    return replace(said, **given)


def ask(world: World, message: str, extension: object) -> dict[str, Any]:
    """Send a message with an extension, and return its task."""
    said = {"messageId": message, "role": "ROLE_USER", "parts": [{"text": "x"}], "metadata": {URI: extension}}
    with world.http() as http:
        task: dict[str, Any] = http.post("/a2a/agents/echo/message:send", json={"message": said}).json()["task"]
        return task


def sources(world: World, task: dict[str, Any]) -> set[str]:
    """Return where the data of a task came from."""
    items = world.relay.handoff(task["id"]).baton().items
    return {one.value.source for one in items if isinstance(one.value, Artifact)}


def depth_of(world: World, task: dict[str, Any]) -> int:
    """Return how many agents worked on it before, as its root says."""
    from batonpass.records.text import read_receipt  # noqa: PLC0415 - beside its only use

    with world.relay.store.view() as view:
        root = view.get_handoff(task["id"]).root
        return int(read_receipt(view.get_receipt_at(root, 1)).body.upstream)  # type: ignore[union-attr, arg-type]


def test_a_pinned_peer_is_believed(world: World, peer: Relay) -> None:
    """Its depth counts, its terms narrow what the agent may do, and the record says whose word it was."""
    task = ask(world, "p1", sign_lineage(lineage(world, "p1"), signer_of(peer)))

    assert (3, {"a2a peer friend"}) == (depth_of(world, task), sources(world, task))
    assert "read:src/**" == task["status"]["message"]["parts"][0]["text"]


@pytest.mark.parametrize("how", ["another key", "another message", "another agent", "long ago", "a changed byte"])
def test_any_other_word_is_not_believed_and_counts_all_the_same(world: World, peer: Relay, how: str) -> None:
    """It can stop the work sooner, and open nothing."""
    said = lineage(world, how)
    wrong = {
        "another message": replace(said, message="other"),
        "another agent": replace(said, audience="https://elsewhere"),
        "long ago": replace(said, at="2020-01-01T00:00:00+00:00"),
    }.get(how, said)
    signer = signer_of(world.relay) if how == "another key" else signer_of(peer)
    signed = sign_lineage(wrong, signer)
    if how == "a changed byte":
        signed = {**signed, "payload": sign_lineage(replace(said, depth=0), signer)["payload"]}
    task = ask(world, how, signed)

    assert {"a2a"} == sources(world, task)
    assert (0 if how == "a changed byte" else 3) == depth_of(world, task)


@pytest.mark.parametrize("depth", [-5, 0])
def test_no_word_counts_against_the_depth(world: World, depth: int) -> None:
    """Nobody gets further by saying that fewer than none worked before."""
    signed = sign_lineage(lineage(world, f"d{depth}", depth=depth), signer_of(world.relay))

    assert 0 == depth_of(world, ask(world, f"d{depth}", signed))


def test_a_caller_that_says_it_is_deep_is_as_deep(world: World) -> None:
    """It is refused, with the reason, and nobody works."""
    signed = sign_lineage(lineage(world, "deep", depth=99), signer_of(world.relay))
    task = ask(world, "deep", signed)

    assert "TASK_STATE_REJECTED" == task["status"]["state"]
    assert "[handoff.too_deep]" in task["status"]["message"]["parts"][0]["text"]


@pytest.mark.parametrize("given", [{}, {"payload": 7}, {"payload": "!!"}, {"payload": "e30="}, "text", None, [1]])
def test_what_cannot_be_read_is_as_if_it_were_not_there(world: World, given: object) -> None:
    """No extension of anybody breaks the door."""
    task = ask(world, f"odd {given}", given)

    assert ("TASK_STATE_COMPLETED", 0) == (task["status"]["state"], depth_of(world, task))


class Told:
    """A receiver of notifications on loopback."""

    def __init__(self) -> None:
        self.heard: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.refuses = 1  # so many times
        told = self

        class Handler(BaseHTTPRequestHandler):
            """Keeps what is posted."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if told.refuses:
                    told.refuses -= 1
                    self.send_response(503)
                else:
                    told.heard.append((dict(self.headers), json.loads(body)))
                    self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self.serving = Thread(target=self.server.serve_forever)


@pytest.fixture
def told() -> Iterator[Told]:
    """Return a receiver that listens."""
    receiver = Told()
    receiver.serving.start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
    receiver.serving.join()


def test_a_caller_is_told_what_happens_to_its_task(world: World, told: Told) -> None:
    """With what it gave to recognise it by, again if nobody took it, until it is over; then it is forgotten."""
    push = {"url": told.url, "token": "t0ken", "authentication": {"scheme": "Bearer", "credentials": "s3cret"}}
    said = {"messageId": "push", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    with world.http() as http:
        task = http.post(
            "/a2a/agents/echo/message:send",
            json={"message": said, "configuration": {"returnImmediately": True, "taskPushNotificationConfig": push}},
        ).json()["task"]
        until(lambda: any("COMPLETED" in json.dumps(body) for _, body in told.heard))
        path = f"/a2a/agents/echo/tasks/{task['id']}/pushNotificationConfigs"
        until(lambda: not http.get(path).json().get("configs"))
    headers = [one for one, _ in told.heard]

    assert {("t0ken", "Bearer s3cret")} == {(one["X-A2A-Notification-Token"], one["Authorization"]) for one in headers}
    assert all(task["id"] in json.dumps(body) for _, body in told.heard)
    assert 0 == told.refuses


def test_what_a_caller_gives_for_a_task_that_is_over_stays(world: World) -> None:
    """Nothing more is told, and the caller can still read what it gave, and take it back; so too an unknown name."""
    task = ask(world, "over", None)
    path = f"/a2a/agents/echo/tasks/{task['id']}/pushNotificationConfigs"
    with world.http() as http:
        given = http.post(path, json={"id": "p", "url": "https://nobody.invalid/hook"})
        until(lambda: _is_closed(world, task["id"]))
        kept = http.get(f"{path}/p").json()
        removed = http.delete(f"{path}/p").status_code, http.get(f"{path}/p").status_code

    assert (200, "https://nobody.invalid/hook") == (given.status_code, kept["url"])
    assert 404 == removed[1]


def _is_closed(world: World, task: str) -> bool:
    with world.relay.store.view() as view:
        return view.get_run(world.relay.handoff(task).info().root).state is RunState.COMPLETED


def test_an_address_of_this_network_is_not_told(tmp_path: Path) -> None:
    """Unless somebody listed it: the caller is told at once."""
    push = {"url": "http://127.0.0.1:9/x"}
    said = {"messageId": "push", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    asked = {"message": said, "configuration": {"taskPushNotificationConfig": push}}
    with a_world(tmp_path, {"echo": echo}, CARDS, workers=0) as world, world.http() as http:
        answer = http.post("/a2a/agents/echo/message:send", json=asked)

    assert 400 == answer.status_code
    assert "egress.refused" in answer.text
