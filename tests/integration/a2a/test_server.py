"""A2A over HTTP, with the official client: a task is a handoff, and its caller is outside."""

import base64
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier

from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import StreamId
from batonpass.model.base.lifecycle import State
from batonpass.model.ledger.run import RunState
from batonpass.records.text import read_receipt
from batonpass.relay import signer_of
from batonpass.server.a2a.incoming_task import CALLER
from batonpass.server.access import AccessLimits
from tests.integration.a2a.world import BINDINGS, DAY, PATIENCE, World, a_card, a_world, request, run, send, until

DONE = TaskState.TASK_STATE_COMPLETED


class Pace:
    """Lets a slow agent begin, and go on."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.stopped = threading.Event()


PACE = Pace()


def echo(work: LiveRun) -> dict[str, Any]:
    """Say what was asked, and with which label it came."""
    return {"heard": work.read("request.txt").decode(), "label": str(work.label.integrity), "tainted": bool(work.taint)}


def slow(work: LiveRun) -> str:
    """Work until somebody says so; each step is recorded, so a withdrawn attempt ends at its next step."""
    PACE.begun.set()
    try:
        for step in range(int(PATIENCE / 0.02)):
            work.checkpoint({"step": step})
            if PACE.go_on.wait(0.02):
                return "done"
    except BaseException:
        PACE.stopped.set()
        raise
    return "nobody let me go on"


def giver(work: LiveRun) -> None:
    """Give files back."""
    work.attach("latin.txt", b"caf\xe9", media_type="text/plain")
    work.attach("report.pdf.url", "https://example.com/report.pdf", media_type="text/plain")
    work.attach("shortcut.url", b"[InternetShortcut]", media_type="text/plain")


CARDS = {
    "echo": a_card("echo", description="Says what it was asked.", skills=("echo", "repeat"), ceiling=("read:**",)),
    "slow": a_card("slow", description="Takes its time.", ceiling=("read:**",)),
    "open": a_card("open", description="Anybody may ask.", ceiling=("read:public/**",), public=True),
    "giver": a_card("giver", description="Gives files back.", ceiling=("read:**",)),
    "bare": a_card("bare", description="May do nothing that a caller may delegate.", ceiling=("write:secret/**",)),
}
AGENTS = {"echo": echo, "slow": slow, "open": echo, "giver": giver, "bare": echo}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Serve five agents, once for all tests here."""
    with a_world(tmp_path_factory.mktemp("a2a"), AGENTS, CARDS) as served:
        yield served


@pytest.fixture
def pace() -> Iterator[Pace]:
    """Return what lets the slow agent go on, and let it."""
    for one in (PACE.begun, PACE.go_on, PACE.stopped):
        one.clear()
    yield PACE
    PACE.go_on.set()


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_task_is_a_handoff_from_outside(world: World, binding: str) -> None:
    """The agent gets the words as quarantined data and answers; ledger and client tell the same."""

    async def ask() -> Task:
        async with world.client("echo", binding=binding) as client:
            return await send(client, request("Ship 3 boxes"))

    task = run(ask())
    known = world.relay.handoff(task.id)
    told = dict(task.artifacts[0].parts[0].data.struct_value.items())

    assert DONE == task.status.state
    assert {"heard": "Ship 3 boxes", "label": "external", "tainted": True} == told
    assert ("external-to-agent", "echo") == (known.baton().relation, known.info().to)
    assert "Ship 3 boxes" not in known.baton().task
    assert ["Ship 3 boxes"] == [one.parts[0].text for one in task.history]


def test_its_root_stands_for_the_caller_and_ends_with_it(world: World) -> None:
    """It is of the token's principal, enforced, tainted, and completed once the task is over."""

    async def ask() -> Task:
        async with world.client("echo", "service:roots") as client:
            return await send(client, request("Hello"))

    task = run(ask())
    root = world.relay.handoff(task.id).info().root
    until(lambda: _root_state(world, task.id) is RunState.COMPLETED)
    with world.relay.store.view() as view:
        kept = view.get_run(root)

    assert (CALLER, "service:roots", RunState.COMPLETED) == (kept.agent, kept.principal, kept.state)
    world.relay.verify()


@pytest.mark.parametrize("binding", BINDINGS)
def test_what_happens_is_streamed(world: World, pace: Pace, binding: str) -> None:
    """A task first, then that it is worked on, then what came of it, and last that it is over."""

    async def ask() -> tuple[list[str], list[str]]:
        told, states = [], []
        async with world.client("slow", binding=binding, streaming=True) as client:
            async for event in client.send_message(request("Stream")):
                told.append(_told(event))
                states.append(TaskState.Name(event.task.status.state) if told[-1] == "task" else told[-1])
                if states[-1] == "TASK_STATE_WORKING":
                    pace.go_on.set()
        return told, states

    told, states = run(ask())

    assert ["task", "artifact", "TASK_STATE_COMPLETED"] == [told[0], *told[-2:]]
    assert "TASK_STATE_WORKING" in states


def _told(event: StreamResponse) -> str:
    kind = str(event.WhichOneof("payload"))
    if kind == "status_update":
        return str(TaskState.Name(event.status_update.status.state))
    return {"artifact_update": "artifact"}.get(kind, kind)


@pytest.mark.parametrize("binding", BINDINGS)
def test_whoever_subscribes_again_hears_the_rest(world: World, pace: Pace, binding: str) -> None:
    """A task that runs is told as it is, and then how it ends; one that is over cannot be followed."""

    async def ask() -> tuple[list[str], str]:
        async with world.client("slow", binding=binding, streaming=True) as client:
            first = client.send_message(request("Slowly"))
            task = (await anext(first)).task.id
            await first.aclose()  # type: ignore[attr-defined]  # an async generator
            heard = []
            async for event in client.subscribe(SubscribeToTaskRequest(id=task)):
                heard.append(_told(event))
                pace.go_on.set()
            with pytest.raises(UnsupportedOperationError):
                [event async for event in client.subscribe(SubscribeToTaskRequest(id=task))]
            return heard, task

    heard, _ = run(ask())

    assert ["task", "TASK_STATE_COMPLETED"] == [heard[0], heard[-1]]


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_cancelled_task_really_stops(world: World, pace: Pace, binding: str) -> None:
    """Its agent can record nothing more, its handoff is cancelled, and it cannot be cancelled twice."""

    async def ask() -> Task:
        async with world.client("slow", binding=binding) as client:
            task = await send(client, request("Slowly", wait=False))
            assert pace.begun.wait(PATIENCE)
            cancelled = await client.cancel_task(CancelTaskRequest(id=task.id))
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(CancelTaskRequest(id=task.id))
            return cancelled

    task = run(ask())

    assert TaskState.TASK_STATE_CANCELED == task.status.state
    assert State.CANCELLED is world.relay.handoff(task.id).state()
    assert pace.stopped.wait(PATIENCE)


def test_the_same_message_is_the_same_task(world: World) -> None:
    """A client that did not get the answer sends it again, and nobody works twice."""

    async def ask() -> tuple[str, str, str]:
        async with world.client("echo", "service:twice") as client:
            one = await send(client, request("Once", message_id="same"))
            again = await send(client, request("Once", message_id="same"))
        async with world.client("echo", "service:another") as client:
            other = await send(client, request("Once", message_id="same"))
        return one.id, again.id, other.id

    one, again, other = run(ask())

    assert one == again
    assert other != one


def test_another_message_with_the_same_id_is_another_task(world: World) -> None:
    """Ids that a client uses twice lose nobody's words."""

    async def ask() -> list[Task]:
        async with world.client("echo", "service:careless") as client:
            said = [request("One", message_id="m"), request("Two", message_id="m"), request("One", message_id="m")]
            return [await send(client, one) for one in said]

    one, two, again = run(ask())

    assert (one.id, "Two") == (again.id, two.history[0].parts[0].text)
    assert one.id != two.id


@pytest.mark.parametrize("binding", BINDINGS)
def test_files_come_back_as_files_and_links_as_links(world: World, binding: str) -> None:
    """Bytes are those that the agent attached, also of a text that is not UTF-8."""

    async def ask() -> Task:
        async with world.client("giver", binding=binding) as client:
            return await send(client, request("Give"))

    parts = [one.parts[0] for one in run(ask()).artifacts]
    told = {part.filename: (part.WhichOneof("content"), part.raw or part.url, part.media_type) for part in parts}

    assert {
        "latin.txt": ("raw", b"caf\xe9", "text/plain"),
        "report.pdf": ("url", "https://example.com/report.pdf", "text/plain"),
        "shortcut.url": ("raw", b"[InternetShortcut]", "text/plain"),
    } == told


def test_what_nobody_reads_is_refused_as_the_protocol_says(world: World) -> None:
    """A number for JSON-RPC, an object with a status for HTTP+JSON; answers have the type of their request."""
    said = {"message": {"messageId": "typed", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}}
    with world.http() as http:
        rpc, rest = (
            http.post(f"/a2a/agents/echo/{path}", content=b"{}", headers={"Content-Type": "text/plain"})
            for path in ("invoke", "message:send")
        )
        kinds = ("application/json", "application/a2a+json")
        asked = [
            http.post("/a2a/agents/echo/message:send", json=said, headers={"Content-Type": kind}) for kind in kinds
        ]

    assert (415, -32005) == (rpc.status_code, rpc.json()["error"]["code"])
    assert (415, 415) == (rest.status_code, rest.json()["error"]["code"])
    assert "CONTENT_TYPE_NOT_SUPPORTED" == rest.json()["error"]["details"][0]["reason"]
    assert [*kinds] == [one.headers["content-type"] for one in asked]


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_caller_sees_only_its_own_tasks(world: World, binding: str) -> None:
    """Another one is told that there is no such task, whatever it tries with it."""

    async def ask() -> None:
        async with world.client("echo", "service:mine", binding=binding) as client:
            task = await send(client, request("Mine"))
            mine = await client.list_tasks(ListTasksRequest())
        async with world.client("echo", "service:other", binding=binding) as client:
            for act in (
                client.get_task(GetTaskRequest(id=task.id)),
                client.cancel_task(CancelTaskRequest(id=task.id)),
                send(client, request("More", task_id=task.id)),
            ):
                with pytest.raises(TaskNotFoundError):
                    await act
            others = await client.list_tasks(ListTasksRequest())
        async with world.client("echo", "service:other", binding=binding, streaming=True) as client:
            with pytest.raises(TaskNotFoundError):
                [event async for event in client.subscribe(SubscribeToTaskRequest(id=task.id))]
        assert task.id in {one.id for one in mine.tasks}
        assert task.id not in {one.id for one in others.tasks}

    run(ask())


def test_tasks_are_listed_by_context_and_page(world: World) -> None:
    """Those that changed last come first; a token leads to the rest; another context is another list."""

    async def ask() -> tuple[list[str], list[str], list[str], int]:
        async with world.client("echo", "service:lists") as client:
            sent = [(await send(client, request(f"Task {number}", context_id="ctx-a"))).id for number in range(3)]
            await send(client, request("Elsewhere", context_id="ctx-b"))
            first = await client.list_tasks(ListTasksRequest(context_id="ctx-a", page_size=2))
            rest = await client.list_tasks(
                ListTasksRequest(context_id="ctx-a", page_size=2, page_token=first.next_page_token)
            )
            return sent, [one.id for one in first.tasks], [one.id for one in rest.tasks], first.total_size

    sent, first, rest, total = run(ask())

    assert (sorted(sent), 3) == (sorted([*first, *rest]), total)
    assert sent[-1] == first[0]


def test_somebody_without_a_token_is_refused(world: World) -> None:
    """Neither the card nor the agent answers, nor the list of agents as a whole."""
    with world.http(None) as nobody:
        told = {
            path: nobody.request(method, path, json={} if method == "POST" else None).status_code
            for method, path in (
                ("GET", "/.well-known/agent-card.json"),
                ("GET", "/.well-known/agent.json"),
                ("GET", "/a2a/agents/echo"),
                ("GET", "/a2a/agents/nobody"),
                ("GET", "/a2a/agents/echo/.well-known/agent-card.json"),
                ("POST", "/a2a/agents/echo/invoke"),
                ("POST", "/a2a/agents/echo/message:send"),
                ("GET", "/a2a/agents/echo/tasks"),
            )
        }
        listed = [one["id"] for one in nobody.get("/a2a/agents").json()]

    assert dict.fromkeys(told, 401) == told
    assert ["open"] == listed


def test_a_token_reaches_only_the_agents_that_it_is_for(world: World) -> None:
    """Others are not within its reach, and not in its list; a token of a person is none of an agent's."""
    with world.http("service:narrow", "slow") as narrow:
        statuses = [narrow.get(f"/a2a/agents/{name}").status_code for name in ("slow", "echo")]
        listed = [one["id"] for one in narrow.get("/a2a/agents").json()]
    auditor = world.relay.admin.add_token("user:eve", "auditor", by="user:root", lasts=DAY).text
    with world.http(None) as http:
        refused = http.get("/a2a/agents/echo", headers={"Authorization": f"Bearer {auditor}"})

    assert ([200, 403], ["slow"]) == (statuses, listed)
    assert (403, "access.role") == (refused.status_code, refused.json()["error"]["code"])


def test_anybody_may_ask_a_public_agent_and_gets_little(world: World) -> None:
    """Their task is reached by its id alone, is in no list, holds the card's ceiling, and gets no push."""

    async def ask() -> tuple[Task, Task, int]:
        async with world.client("open", None) as client:
            task = await send(client, request("Open up"))
            listed = await client.list_tasks(ListTasksRequest())
            again = await client.get_task(GetTaskRequest(id=task.id))
            return task, again, len(listed.tasks)

    task, again, listed = run(ask())
    with world.http(None) as nobody:
        pushed = nobody.post(
            f"/a2a/agents/open/tasks/{task.id}/pushNotificationConfigs", json={"url": "https://example.com/x"}
        )
        other = nobody.post("/a2a/agents/echo/message:send", json={})
    with world.relay.store.view() as view:
        root = view.get_run(world.relay.handoff(task.id).info().root)

    assert (DONE, task.id, 0) == (task.status.state, again.id, listed)
    assert "public:anybody" == root.principal
    assert (400, 401) == (pushed.status_code, other.status_code)


def test_strangers_are_limited(tmp_path: Path) -> None:
    """So many requests a minute, and so many open tasks of all of them together."""
    limits = AccessLimits(public_per_minute=6, public_tasks=2)
    said = {
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]},
        "configuration": {"returnImmediately": True},
    }
    with a_world(tmp_path, AGENTS, CARDS, limits=limits, workers=0) as world, world.http(None) as nobody:
        told = [nobody.post("/a2a/agents/open/message:send", json=said) for _ in range(7)]

    assert [200, 200, 400, 400, 400, 400, 429] == [one.status_code for one in told]
    assert "access.too_many" == told[2].json()["error"]["details"][0]["metadata"]["code"]


def test_a_task_that_cannot_be_given_anything_is_rejected(world: World) -> None:
    """The refusal is on record, and so is the task: whoever asks for it is told why."""

    async def ask() -> tuple[Task, Task]:
        async with world.client("bare") as client:
            task = await send(client, request("Do it"))
            return task, await client.get_task(GetTaskRequest(id=task.id))

    task, again = run(ask())

    assert TaskState.TASK_STATE_REJECTED == task.status.state == again.status.state
    assert "[grant.missing]" in again.status.message.parts[0].text


def test_a_card_is_signed_and_has_no_prompt(world: World) -> None:
    """The official verifier takes it under the relay's key; a changed word is noticed."""
    with world.http() as http:
        given = http.get("/a2a/agents/echo/.well-known/agent-card.json").json()
    raw = bytes.fromhex(signer_of(world.relay).public_key)
    key = jwt.PyJWK({"kty": "OKP", "crv": "Ed25519", "x": base64.urlsafe_b64encode(raw).rstrip(b"=").decode()})
    verify = create_signature_verifier(lambda *_: key, ["EdDSA"])
    card = parse_agent_card(given)
    verify(card)
    card.description = "Does something else."

    with pytest.raises(InvalidSignaturesError):
        verify(card)
    assert list(BINDINGS) == [one["protocolBinding"] for one in given["supportedInterfaces"]]
    assert ["echo", "repeat"] == [one["id"] for one in given["skills"]]
    assert "ceiling" not in str(given)


def test_the_simple_paths_answer_in_their_own_shape(world: World) -> None:
    """Skills are texts, and `protocol` and `endpoint` say how the agent is asked."""
    with world.http() as http:
        primary = http.get("/.well-known/agent.json").json()
        listed = http.get("/a2a/agents").json()
        one = http.get("/a2a/agents/echo").json()
        invoked = http.post(
            one["endpoint"],
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage",
                "params": {"message": {"messageId": "inv", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}},
            },
        ).json()
        slashed = http.post(f"{one['endpoint']}/", json={"jsonrpc": "2.0", "id": 2, "method": "No"}).json()
        unread = http.post(one["endpoint"], content=b"{}", headers={"Content-Type": "text/plain"}).status_code

    assert primary == one == listed[0]
    assert {"id", "name", "description", "version", "skills", "protocol", "endpoint"} == set(one)
    assert (["echo", "repeat"], world.url_of("echo") + "/invoke") == (one["skills"], one["endpoint"])
    assert "TASK_STATE_COMPLETED" == invoked["result"]["task"]["status"]["state"]
    assert (-32601, 415) == (slashed["error"]["code"], unread)


def _root_state(world: World, task: str) -> RunState:
    with world.relay.store.view() as view:
        return view.get_run(world.relay.handoff(task).info().root).state


def test_tasks_survive_a_restart(tmp_path: Path) -> None:
    """A server that begins again knows them, looks after them, and their caller goes on with its token."""

    async def begin(world: World) -> str:
        async with world.client("echo") as client:
            return (await send(client, request("Later", wait=False))).id

    async def finish(world: World) -> Task:
        async with world.client("echo") as client:
            return await client.get_task(GetTaskRequest(id=task))

    with a_world(tmp_path, AGENTS, CARDS, workers=0) as first:
        task = run(begin(first))
        token = first.tokens
    with a_world(tmp_path, AGENTS, CARDS) as second:
        second.tokens = token
        # Nobody asks this server anything, and it looks after the task all the same.
        until(lambda: _root_state(second, task) is RunState.COMPLETED)
        done = run(finish(second))

    assert (task, DONE) == (done.id, done.status.state)


def test_a_task_is_in_the_trace_of_its_caller(world: World) -> None:
    """The header of the request is recorded with the root and the handoff that it begins."""
    caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with world.http() as http:
        done = http.post(
            "/a2a/agents/echo/invoke",
            json={
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage",
                "params": {"message": {"messageId": "traced", "role": "ROLE_USER", "parts": [{"text": "Hi"}]}},
            },
            headers={"traceparent": caller},
        ).json()
    with world.relay.store.view() as view:
        handoff = world.relay.handoff(done["result"]["task"]["id"]).info()
        bodies = [
            read_receipt(view.get_receipt_at(StreamId(run), seq)).body
            for run, seq in ((handoff.root, 1), (handoff.parent, handoff.seq))
        ]

    assert [caller, caller] == [getattr(body, "trace", None) for body in bodies]
