"""A caller over gRPC, in a process of its own: gRPC has threads that a test process which forks should not have.

It reads what to do as JSON from its arguments and prints what it saw as JSON: `python -m … NAME '{…}'`.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import Client
from a2a.types import a2a_pb2, a2a_pb2_grpc
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

from tests.integration.a2a.world import PATIENCE, WHEN, TokenSender, request, send

Seen = dict[str, Any]
HOOK = "https://93.184.215.14/hook"
VERSION = ("a2a-version", "1.0")


@asynccontextmanager
async def client(given: Seen, agent: str, token: str, *, streaming: bool = False) -> AsyncIterator[Client]:
    """Return the official client of an agent, over gRPC."""
    trusted = given.get("certificate")
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE, verify=trusted or False) as http:
        card = await A2ACardResolver(http, f"{given['address']}/a2a/agents/{agent}").get_agent_card()
        config = ClientConfig(
            streaming=streaming,
            httpx_client=http,
            supported_protocol_bindings=["GRPC"],
            grpc_channel_factory=lambda url: _channel(url, trusted),
        )
        async with ClientFactory(config).create(card, interceptors=[TokenSender(token)]) as made:
            yield made


def _channel(url: str, trusted: str | None) -> grpc.aio.Channel:
    if trusted is None:
        return grpc.aio.insecure_channel(url)
    return grpc.aio.secure_channel(url, grpc.ssl_channel_credentials(Path(trusted).read_bytes()))


def tell(words: str) -> None:
    """Say something to whoever started this."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def state(number: int) -> str:
    """Return the name of a state."""
    return str(TaskState.Name(number))


async def task(given: Seen) -> Seen:
    """Send a message, and look at its task in every way that its caller may."""
    async with client(given, "echo", given["token"]) as own:
        done = await send(own, request("Ship 3 boxes"))
        listed = [one.id for one in (await own.list_tasks(ListTasksRequest())).tasks]
        waits = await send(own, request("Wait", wait=False, message_id="waits"))
        hook = await own.create_task_push_notification_config(
            TaskPushNotificationConfig(task_id=waits.id, id="p", url=HOOK)
        )
        about = {"task_id": waits.id, "id": "p"}
        known = await own.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(**about))
        await own.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(**about))
        left = await own.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=waits.id))
    async with client(given, "idle", given["token"]) as own:
        begun = await send(own, request("Never", wait=False))
        cancelled = await own.cancel_task(CancelTaskRequest(id=begun.id))
        again = await _error(own.cancel_task(CancelTaskRequest(id=begun.id)), TaskNotCancelableError)
    async with client(given, "echo", given["other"]) as other:
        hidden = [
            await _error(other.get_task(GetTaskRequest(id=done.id)), TaskNotFoundError),
            await _error(other.cancel_task(CancelTaskRequest(id=done.id)), TaskNotFoundError),
            await _error(send(other, request("More", task_id=done.id)), TaskNotFoundError),
        ]
    return {
        "id": done.id,
        "state": state(done.status.state),
        "words": done.status.message.parts[0].text,
        "history": [one.parts[0].text for one in done.history],
        "listed": done.id in listed,
        "push": [hook.url, known.url, len(left.configs)],
        "cancelled": [state(cancelled.status.state), again],
        "hidden": hidden,
    }


async def _error(act: Coroutine[Any, Any, Any], kind: type[Exception]) -> bool:
    try:
        await act
    except kind:
        return True
    return False


async def stream(given: Seen) -> Seen:
    """Follow a task to its end, and one again. Neither is worked on before it is followed."""
    with tempfile.TemporaryDirectory() as gates:
        followed, left = Path(gates, "followed"), Path(gates, "left")
        async with client(given, "echo", given["token"], streaming=True) as own:
            events = await _follow(own.send_message(request(f"{WHEN}{followed}")), followed)
            first = own.send_message(request(f"{WHEN}{left}"))
            number = (await anext(first)).task.id
            await first.aclose()  # type: ignore[attr-defined]  # an async generator
            again = await _follow(own.subscribe(SubscribeToTaskRequest(id=number)), left)
    return {"told": [str(event.WhichOneof("payload")) for event in events], "last": _end(events), "again": _end(again)}


async def _follow(told: AsyncIterator[StreamResponse], gate: Path) -> list[StreamResponse]:
    """Return the events of a task. Its agent may begin once the first of them is here."""
    events = []
    async for event in told:
        events.append(event)
        gate.touch()  # noqa: ASYNC240 - nothing else is waited for here
    return events


def _end(events: list[StreamResponse]) -> str:
    return state(events[-1].status_update.status.state)


async def drain(given: Seen) -> Seen:
    """Wait for a task and follow another one while the server is told to end."""
    token = given["token"]
    async with client(given, "idle", token) as own, client(given, "idle", token, streaming=True) as two:
        waiting = asyncio.create_task(send(own, request("Finish this")))
        events = two.send_message(request("Follow this"))
        await anext(events)
        while len((await own.list_tasks(ListTasksRequest())).tasks) < 2:  # noqa: ASYNC110 - both of them
            await asyncio.sleep(0.05)
        tell("ready")
        try:
            [event async for event in events]
            cut = ""
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            cut = str(error)
        done = await waiting
        return {"cut": cut, "state": state(done.status.state)}


def refusals(given: Seen, task: str) -> Seen:
    """Return what each method tells each kind of caller about a task, and what is refused besides."""
    with grpc.insecure_channel(given["grpc"]) as channel:
        stub = a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]  # generated
        who = {name: [VERSION, _token(token)] for name, token in given["callers"].items()}
        who["nobody"] = [VERSION]
        mine = _token(given["token"])
        get = next(method for method in _methods() if method.name == "GetTask")
        versions: list[list[tuple[str, str]]] = [[], [("a2a-version", "0.3")], [("a2a-version", "1.0.1")]]
        return {
            "table": {
                name: {method.name: _code(stub, method, task, metadata) for method in _methods()}
                for name, metadata in who.items()
            },
            "version": [_code(stub, get, task, [mine, *version]) for version in versions],
            "agent": _code(stub, get, task, [VERSION, mine], tenant="nobody"),
            "first": _code(stub, get, task, [VERSION, mine], tenant=""),
            "large": _send(stub, [VERSION, mine], "x" * 9_000_000),
            "public": _send(stub, [VERSION], "Hello", "open"),
            "push": _send(stub, [VERSION], "Hello", "open", push=True),
            "often": [_code(stub, get, task, [VERSION], tenant="open") for _ in range(60)][-1],
        }


def _token(token: str) -> tuple[str, str]:
    return "authorization", f"Bearer {token}"


def _methods() -> Any:  # noqa: ANN401 - generated
    return a2a_pb2.DESCRIPTOR.services_by_name["A2AService"].methods


def _code(stub: Any, method: Any, task: str, metadata: Any, tenant: str = "echo") -> str:  # noqa: ANN401 - generated
    fields = method.input_type.fields_by_name
    asked = getattr(a2a_pb2, method.input_type.name)()
    if "message" in fields:
        asked.CopyFrom(request("More", task_id=task, message_id="more"))
    if "task_id" in fields:
        asked.task_id = task
        if "id" in fields:
            asked.id = "p"
    elif "id" in fields:
        asked.id = task
    if "url" in fields:
        asked.url = HOOK
    asked.tenant = tenant
    act = getattr(stub, method.name)
    return _told(lambda: act(asked, metadata=metadata, timeout=PATIENCE), streams=method.server_streaming)


def _send(stub: Any, metadata: Any, text: str, tenant: str = "echo", *, push: bool = False) -> str:  # noqa: ANN401 - generated
    asked = request(text, wait=False)
    asked.tenant = tenant
    if push:
        asked.configuration.task_push_notification_config.url = HOOK
    return _told(lambda: stub.SendMessage(asked, metadata=metadata, timeout=PATIENCE), streams=False)


def _told(act: Callable[[], Any], *, streams: bool) -> str:
    try:
        _ = list(act()) if streams else act()
    except grpc.RpcError as error:
        return f"{error.code().name}: {error.details()}"
    return "OK"


async def everything(given: Seen) -> Seen:
    """Do everything that a server answers."""
    seen = await task(given)
    followed, refused = await stream(given), await asyncio.to_thread(refusals, given, seen["id"])
    return {"task": seen, "stream": followed, "refusals": refused}


if __name__ == "__main__":
    act = {"everything": everything, "drain": drain}[sys.argv[1]]
    tell(json.dumps(asyncio.run(asyncio.wait_for(act(json.loads(sys.argv[2])), PATIENCE))))
