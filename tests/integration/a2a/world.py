"""A real server on loopback with agents that others may ask over A2A, a worker for them, and the official client."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.client import Client, ClientCallContext
from a2a.client.interceptors import AfterArgs, BeforeArgs, ClientCallInterceptor
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageConfiguration, SendMessageRequest, StreamResponse, Task
from starlette.types import ASGIApp

from batonpass.dispatch.worker import Worker
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import AccessRole
from batonpass.model.baton.card import Card
from batonpass.relay import Relay
from batonpass.server.a2a.mount import A2aDoor
from batonpass.server.a2a.settings import A2aSettings
from batonpass.server.access import AccessLimits
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from batonpass.server.listener import LedgerServer

DAY = timedelta(days=1)
WHEN = "Echo when there is "  # and the path of a file
MAY = ("read:**", "call:*")
PATIENCE = 60
BINDINGS = ("JSONRPC", "HTTP+JSON")
Told = TypeVar("Told")


def a_card(agent: str, **given: Any) -> Card:  # noqa: ANN401 - fields of a card
    """Return the card of an agent."""
    return Card(agent=AgentId(agent), **given)


@dataclass
class World:
    """A server, and everything that a test does with it."""

    relay: Relay
    address: str
    tokens: dict[str, str] = field(default_factory=dict)
    may: Sequence[str] = MAY

    def url_of(self, agent: str) -> str:
        """Return where an agent is."""
        return f"{self.address}/a2a/agents/{agent}"

    def token(self, who: str, *agents: str) -> str:
        """Return a token of somebody, for these agents or all."""
        name = " ".join((who, *agents))
        if name not in self.tokens:
            self.tokens[name] = self.relay.admin.add_token(
                who, AccessRole.AGENT, by="user:root", lasts=DAY, agents=agents, may=self.may, may_delegate=self.may
            ).text
        return self.tokens[name]

    def http(self, who: str | None = "service:shop", *agents: str) -> httpx.Client:
        """Return a plain client with somebody's token, or without one."""
        headers = {"A2A-Version": "1.0"}
        if who is not None:
            headers["Authorization"] = f"Bearer {self.token(who, *agents)}"
        return httpx.Client(base_url=self.address, headers=headers, timeout=PATIENCE)

    @asynccontextmanager
    async def client(
        self, agent: str, who: str | None = "service:shop", *, binding: str = "JSONRPC", streaming: bool = False
    ) -> AsyncIterator[Client]:
        """Return the official client of an agent, with somebody's token."""
        headers = {} if who is None else {"Authorization": f"Bearer {self.token(who)}"}
        async with httpx.AsyncClient(headers=headers, timeout=PATIENCE) as http:
            card = await A2ACardResolver(http, self.url_of(agent)).get_agent_card()
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_protocol_bindings=[binding],
            )
            tokens: list[ClientCallInterceptor] = [] if who is None else [TokenSender(self.token(who))]
            async with ClientFactory(config).create(card, interceptors=tokens) as client:
                yield client


class TokenSender(ClientCallInterceptor):
    """Sends a token, whichever way a request goes."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def before(self, args: BeforeArgs) -> None:
        """Add it."""
        args.context = args.context or ClientCallContext()
        args.context.service_parameters = {
            **(args.context.service_parameters or {}),
            "Authorization": f"Bearer {self._token}",
        }

    async def after(self, args: AfterArgs) -> None:
        """Do nothing."""
        del args


def run(act: Coroutine[Any, Any, Told]) -> Told:
    """Run a coroutine to its end."""
    return asyncio.run(asyncio.wait_for(act, PATIENCE))


def request(text: str, *, wait: bool = True, **given: Any) -> SendMessageRequest:  # noqa: ANN401 - fields of a message
    """Return a request that sends a text."""
    number = given.pop("message_id", None) or f"m-{next(_NUMBERS)}"
    message = Message(message_id=number, role=Role.ROLE_USER, parts=[Part(text=text)], **given)
    return SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=not wait))


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


_NUMBERS = _numbers()


async def send(client: Client, asked: SendMessageRequest) -> Task:
    """Send a message and return its task."""
    last: StreamResponse | None = None
    async for event in client.send_message(asked):
        last = event
    assert last is not None
    return last.task


@contextmanager
def a_world(
    home: Path,
    agents: dict[str, Callable[..., Any]],
    cards: dict[str, Card],
    *,
    limits: AccessLimits | None = None,
    workers: int = 1,
    policy: Path | None = None,
    may: Sequence[str] = MAY,
    **settings: Any,  # noqa: ANN401 - of the door
) -> Iterator[World]:
    """Serve agents on loopback, with a worker for them, until the block ends."""
    place = home / ".batonpass"
    with Relay.open(place / "ledger.db", home=place, keys_in_files=True, work_tree=home, policy=policy) as relay:
        for name, card in cards.items():
            relay.register(name, agents[name], card=card)
        opened = socket.create_server(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{opened.getsockname()[1]}"
        plane = ControlPlane.over(relay, limits=limits)
        door = A2aDoor(plane, A2aSettings(address=address, **settings))
        app = make_app(plane, hosts=hosts_for("127.0.0.1"), mounts=door.routes)
        config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1)
        server = LedgerServer(config, ready=lambda: None, beside=[door])
        serving = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        serving.start()
        stop = threading.Event()
        often = {"poll": timedelta(milliseconds=50)}
        at_work = [
            threading.Thread(target=Worker(relay, name=f"worker:{number}").run_until, args=(stop,), kwargs=often)
            for number in range(workers)
        ]
        for one in at_work:
            one.start()
        try:
            yield World(relay, address, may=may)
        finally:
            server.should_exit = True
            stop.set()
            serving.join()
            for one in at_work:
                one.join()


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def served(make: Callable[[str], ASGIApp]) -> Iterator[str]:
    """Serve any application on loopback until the block ends, and return its address."""
    opened = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{opened.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(make(address), log_config=None, lifespan="off", timeout_graceful_shutdown=1))
    serving = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    serving.start()
    try:
        yield address
    finally:
        server.should_exit = True
        serving.join()
