"""Every path and method of A2A × every role × somebody else's task, from the routes of the door and the SDK's table.

A new path or method is in this test as soon as it is served; it needs an example here.
"""

from dataclasses import dataclass
from typing import Any, Final, cast

import pytest
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from starlette.routing import Route, Router

from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import AccessRole
from batonpass.model.baton.card import Card
from batonpass.relay import Relay
from batonpass.server.a2a.mount import A2aDoor
from batonpass.server.a2a.opened_door import OpenedDoor
from batonpass.server.a2a.settings import A2aSettings
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from batonpass.store.port import ReceiptQuery
from tests.unit.server.conftest import ANA, BEN, DAY, a_house
from tests.unit.server.visitor import Answered, Visitor

MAY: Final = ("read:**",)
SETTINGS: Final = A2aSettings(address="http://127.0.0.1:7420")
AGENT: Final = "/a2a/agents/{agent:path}"
PUSH: Final = {"id": "p", "url": "https://93.184.215.14/hook"}
CONFIGS: Final = f"{AGENT}/tasks/{{id}}/pushNotificationConfigs"
RPC: Final = f"{AGENT}/invoke"


def a_message(**given: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a message
    """Return a request with a message that Ana sent before, which is the same task again."""
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "Hello"}], **given}
    return {"message": message, "configuration": {"returnImmediately": True}}


# What is sent where; `TASK` stands for the id of Ana's task. None: there is no body.
TASK: Final = "the task"
PATHS: Final[dict[tuple[str, str], dict[str, Any] | None]] = {
    ("GET", "/.well-known/agent-card.json"): None,
    ("GET", "/.well-known/agent.json"): None,
    ("GET", "/a2a/agents"): None,
    ("GET", f"{AGENT}/.well-known/agent-card.json"): None,
    ("GET", f"{AGENT}/extendedAgentCard"): None,
    ("GET", f"{AGENT}/tasks"): None,
    ("GET", f"{AGENT}/tasks/{{id}}"): None,
    ("GET", f"{AGENT}/tasks/{{id}}:subscribe"): None,
    ("POST", f"{AGENT}/tasks/{{id}}:subscribe"): {},
    ("POST", f"{AGENT}/message:send"): a_message(taskId=TASK),
    ("POST", f"{AGENT}/message:stream"): a_message(taskId=TASK),
    ("POST", CONFIGS): PUSH,
    ("GET", CONFIGS): None,
    ("GET", f"{CONFIGS}/{{push_id}}"): None,
    ("DELETE", f"{CONFIGS}/{{push_id}}"): None,
    ("POST", f"{AGENT}/tasks/{{id}}:cancel"): {},
    ("GET", AGENT): None,
}
METHODS: Final[dict[str, dict[str, Any]]] = {
    "SendMessage": a_message(taskId=TASK),
    "SendStreamingMessage": a_message(taskId=TASK),
    "GetTask": {"id": TASK},
    "ListTasks": {},
    "CancelTask": {"id": TASK},
    "SubscribeToTask": {"id": TASK},
    "CreateTaskPushNotificationConfig": {"taskId": TASK, **PUSH},
    "GetTaskPushNotificationConfig": {"taskId": TASK, "id": "p"},
    "ListTaskPushNotificationConfigs": {"taskId": TASK},
    "DeleteTaskPushNotificationConfig": {"taskId": TASK, "id": "p"},
    "GetExtendedAgentCard": {},
}
# What names no task: cards, the list of one's own tasks.
OF_NOBODY: Final = frozenset({"ListTasks", "GetExtendedAgentCard"})
CARDS: Final = frozenset(path for method, path in PATHS if method == "GET" and "{id}" not in path)
Way = tuple[str, str, str | None]  # how it is sent, where, and the method of JSON-RPC
WAYS: Final[list[Way]] = [
    *((method, path, None) for method, path in PATHS),
    *(("POST", RPC + slash, method) for slash in ("", "/") for method in METHODS),
]
NOT_FOUND: Final = -32001


@dataclass(slots=True)
class Scene:
    """Two callers; one of them has a task, and wants to be told about it."""

    relay: Relay
    everybody: dict[str, str]  # tokens by role
    ana: Visitor
    ben: Visitor
    task: str

    def ask(self, visitor: Visitor, way: Way) -> Answered:
        """Send what a path and a method take, about Ana's task."""
        method, path, rpc = way
        where = path.replace("{agent:path}", "echo").replace("{id}", self.task).replace("{push_id}", "p")
        said = PATHS[method, path] if rpc is None else METHODS[rpc]
        body = _named(said, self.task)
        if rpc is not None:
            body = {"jsonrpc": "2.0", "id": 1, "method": rpc, "params": body}
        if body is None:
            return visitor.send(method, where, a2a_version="1.0")
        return visitor.post(where, body, a2a_version="1.0")

    def visitor(self, token: str | None) -> Visitor:
        """Return somebody else."""
        return Visitor(self.ana.app, token)

    def receipts(self) -> int:
        """Return how many receipts there are in Ana's tree."""
        with self.relay.store.view() as view:
            root = self.relay.handoff(self.task).info().root
            return sum(1 for _ in view.find_receipts(ReceiptQuery(root=root)))

    def recorded(self) -> int:
        """Return how many receipts there are."""
        with self.relay.store.view() as view:
            return view.last_position()


def _named(said: Any, task: str) -> Any:  # noqa: ANN401 - JSON
    if isinstance(said, dict):
        return {name: _named(value, task) for name, value in said.items()}
    return task if said == TASK else said


@pytest.fixture
def scene(relay: Relay) -> Scene:
    """Return a server with agents, and a task of Ana's."""
    for name in ("echo", "other"):
        relay.introduce(Card(agent=AgentId(name), ceiling=MAY))
    everybody = a_house(relay).everybody
    plane = ControlPlane.over(relay)
    app = make_app(plane, hosts=hosts_for("127.0.0.1"), mounts=A2aDoor(plane, SETTINGS).routes)
    ana, ben = (
        Visitor(app, relay.admin.add_token(who, "agent", by=BEN, lasts=DAY, may_delegate=MAY).text)
        for who in (ANA, BEN)
    )
    asked = a_message()
    asked["configuration"]["taskPushNotificationConfig"] = PUSH
    told = ana.post("/a2a/agents/echo/message:send", asked, a2a_version="1.0")
    return Scene(relay, everybody, ana, ben, told.json["task"]["id"])


def test_every_path_and_method_has_an_example(relay: Relay) -> None:
    """What is served is tried below."""
    app = cast("Router", OpenedDoor(ControlPlane.over(relay), SETTINGS).app)
    served = {
        (method, route.path) for route in app.routes if isinstance(route, Route) for method in route.methods or ()
    }
    rpc = {("POST", RPC), ("POST", f"{RPC}/")}

    assert served == {*PATHS, *rpc} | {("HEAD", path) for method, path in PATHS if method == "GET"}
    assert set(JsonRpcDispatcher.METHOD_TO_MODEL) == set(METHODS)


def test_without_a_token_nothing_is_answered(scene: Scene) -> None:
    """Neither read nor done, on any path, by any method."""
    before = scene.recorded()
    told = {way: (answer.status, answer.code) for way in WAYS for answer in (scene.ask(scene.visitor(None), way),)}

    assert dict.fromkeys(told, (401, "access.unknown_token")) == told
    assert before == scene.recorded()


@pytest.mark.parametrize("role", [role.value for role in AccessRole if role is not AccessRole.AGENT])
def test_people_do_not_ask_over_a2a(scene: Scene, role: str) -> None:
    """A token of another role is told which role it takes, and nothing happens."""
    before = scene.recorded()
    visitor = scene.visitor(scene.everybody[role])
    told = {way: (answer.status, answer.code) for way in WAYS for answer in (scene.ask(visitor, way),)}

    assert dict.fromkeys(told, (403, "access.role")) == told
    assert before == scene.recorded()


def test_a_token_for_another_agent_reaches_nothing_of_this_one(scene: Scene) -> None:
    """It is in its reach to list what it may ask, and no more."""
    token = scene.relay.admin.add_token(ANA, "agent", by=BEN, lasts=DAY, agents=["other"], may_delegate=MAY).text
    before = scene.recorded()
    told = {
        way: (answer.status, answer.code)
        for way in WAYS
        if way[1] != "/a2a/agents"
        for answer in (scene.ask(scene.visitor(token), way),)
    }

    assert dict.fromkeys(told, (403, "access.out_of_reach")) == told
    assert before == scene.recorded()


def test_a_caller_reaches_nothing_of_somebody_elses_task(scene: Scene) -> None:
    """It is told that there is no such task, on every path that names one, and writes nothing."""
    before, recorded = scene.receipts(), scene.recorded()
    let_in = {}
    for way in WAYS:
        answer = scene.ask(scene.ben, way)
        names_a_task = way[1] not in CARDS if way[2] is None else way[2] not in OF_NOBODY
        if scene.task in answer.body.decode() or (names_a_task and not _is_not_found(answer)):
            let_in[way] = answer.body

    assert {} == let_in
    assert (before, recorded) == (scene.receipts(), scene.recorded())


def _is_not_found(answer: Answered) -> bool:
    if answer.status == 404:
        return True
    text = answer.body.decode()
    return f'"code":{NOT_FOUND}' in text.replace(" ", "")


def test_its_own_caller_is_let_in(scene: Scene) -> None:
    """The tests above would pass if nobody were let in at all."""
    scene.relay.handoff(scene.task).cancel(by=ANA, reason="so that nobody follows it for good")
    shut = {}
    for way in WAYS:
        answer = scene.ask(scene.ana, way)
        removed = "push_id" in way[1] or "PushNotificationConfig" in (way[2] or "")
        if answer.status in {401, 403} or (_is_not_found(answer) and not removed):
            shut[way] = answer.body

    assert {} == shut
