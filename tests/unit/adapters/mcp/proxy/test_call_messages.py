"""Which messages are calls: judged and recorded, whatever their method is; all others pass."""

import json
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.mcp.messages.message import Message
from batonpass.adapters.mcp.proxy.call_messages import read_call
from batonpass.adapters.mcp.proxy.proxy_recorder import ProxyOrigin
from batonpass.adapters.mcp.server_declaration import Hints, Server
from batonpass.handoff.files.path_spellings import texts_in
from batonpass.model.base.kinds import Gate
from batonpass.model.bodies.body import ToolDenied, ToolRequested
from batonpass.model.grants.grant import Grant
from batonpass.model.grants.scope_text import read_scope
from batonpass.model.policy.policy_rules import Policy, Rule, Subject
from tests.unit.adapters.mcp.stage import Stage

SUBSCRIBE = ("resources/subscribe", {"uri": "mail://1"}, "mcp-subscription__shop")
LISTEN = (
    "subscriptions/listen",
    {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["mail://1"]}},
    "mcp-subscription__shop",
)
COMPLETE = (
    "completion/complete",
    {
        "ref": {"type": "ref/resource", "uri": "mail://{box}"},
        "argument": {"name": "box", "value": "in"},
        "context": {"arguments": {"of": "ana"}},
    },
    "mcp-completion__shop",
)
PROMPT = ("prompts/get", {"name": "greet", "arguments": {"whom": "bo"}}, "mcp-prompt__shop")
READ = ("resources/read", {"uri": "mail://1"}, "mcp-resource__shop")
READINGS = [pytest.param(*each, id=each[0]) for each in (SUBSCRIBE, LISTEN, COMPLETE, PROMPT, READ)]


@pytest.mark.parametrize(("method", "params", "tool"), READINGS)
def test_what_names_something_is_recorded_with_all_that_it_names(
    method: str, params: dict[str, Any], tool: str
) -> None:
    """As a reading, with its outcome; what is only said about the request is not an argument of it."""
    stage = Stage()

    stage.say(method, 1, params={**params, "_meta": {"progressToken": 5}})
    stage.tell(None, 1, result={})

    (body,) = stage.bodies(ToolRequested)
    assert (tool, True, ["run.started", "tool.requested", "tool.completed"]) == (body.tool, body.reads, stage.kinds())
    assert [{"tool": tool, "arguments": params}] == [json.loads(words) for words in stage.words("arguments")]


@pytest.mark.parametrize(("method", "params", "tool"), READINGS)
def test_what_names_something_is_judged(method: str, params: dict[str, Any], tool: str) -> None:
    """A rule denies it by its recorded name, and a grant has to cover it by its method."""
    rule = Rule(name="no-mail", on=Subject.CALL, gate=Gate.DENY, tool=tool)
    ours = Server(name="shop", local=True)
    ruled = Stage(enforced=True, policy=Policy(rules=(rule,)))
    tools = Stage(
        enforced=True, server=ours, origin=ProxyOrigin(by="user:ana", grant=Grant(may=read_scope(["call:shop/*"])))
    )
    granted = Stage(
        enforced=True,
        server=ours,
        origin=ProxyOrigin(by="user:ana", grant=Grant(may=read_scope([f"call:shop/{method}"]))),
    )

    for stage in (ruled, tools, granted):
        stage.say(method, 1, params=params)

    assert ([], [], [1]) == (ruled.to_server, tools.to_server, [each["id"] for each in granted.to_server])
    assert ["no-mail"] == [denied.rule for denied in ruled.bodies(ToolDenied)]
    assert f"tried call:shop/{method}" in tools.to_client[0]["error"]["message"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("resources/read", {"uri": "file://{home}/root.key"}, id="reading a resource"),
        pytest.param("resources/subscribe", {"uri": "file://{home}/root.key"}, id="subscribing to one"),
        pytest.param(
            "subscriptions/listen",
            {"notifications": {"resourceSubscriptions": ["{home}/relay.key"]}},
            id="listening to one",
        ),
        pytest.param(
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "file://{home}/relay.key"}, "argument": {"name": "a", "value": ""}},
            id="completing what refers to one",
        ),
        pytest.param(
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "path", "value": "{home}/relay.key"}},
            id="completing its path",
        ),
        pytest.param(
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "a"},
                "argument": {"name": "a", "value": ""},
                "context": {"arguments": {"path": "{home}"}},
            },
            id="completing beside it",
        ),
        pytest.param("prompts/get", {"name": "show", "arguments": {"path": "{home}/relay.key"}}, id="in a prompt"),
        pytest.param("tools/call", {"name": "{home}/relay.key", "arguments": {}}, id="as the name of a tool"),
        pytest.param("tools/call", {"name": "a", "arguments": ["{home}/relay.key"]}, id="in a row of arguments"),
        pytest.param("tools/call", {"name": "a", "_meta": {"path": "{home}/relay.key"}}, id="beside the arguments"),
        pytest.param("files/remove", {"path": "{home}/relay.key"}, id="in a method that nobody knows"),
        pytest.param("files/remove", ["{home}/relay.key"], id="in a row"),
    ],
)
def test_no_message_names_the_place_of_the_record(tmp_path: Path, method: str, params: object) -> None:
    """By whatever method, not even where nothing else is refused."""
    home = tmp_path / ".batonpass"
    home.mkdir()
    stage = Stage(home=home)

    stage.say(method, 1, params=json.loads(json.dumps(params).replace("{home}", str(home))))

    (denied,) = stage.bodies(ToolDenied)
    assert ([], "protected") == (stage.to_server, denied.rule)


def test_a_call_mentions_all_that_its_message_says() -> None:
    """Names of arguments as well: whoever looks for paths finds them wherever they stand."""
    said = {"name": "/a/name", "arguments": {"/a/key": {"/b/key": ["/c"]}}, "_meta": {"/meta": 1}, "more": "/more"}
    call = read_call(Message(b"", {"method": "tools/call", "params": said}), Server(name="shop"), Hints())

    found = set(texts_in(call.mentioned, lambda _: False)[0])

    assert {"/a/name", "/a/key", "/b/key", "/c", "/meta", "/more"} <= found


HARMLESS = [
    *("initialize", "server/discover", "ping", "logging/setLevel"),
    *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/unsubscribe"),
    *("tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"),
]


@pytest.mark.parametrize("method", HARMLESS)
@pytest.mark.parametrize("enforced", [False, True], ids=["watched", "enforced"])
def test_what_names_nothing_passes(method: str, enforced: bool) -> None:  # noqa: FBT001 - pytest calls it
    """Also where everything is enforced and nothing granted, and it leaves no receipt."""
    stage = Stage(enforced=enforced, origin=ProxyOrigin(by="user:ana", grant=Grant(may=read_scope([]))))

    stage.say(method, 1, params={"cursor": "a"})
    stage.say("subscriptions/listen", 2, params={"notifications": {"toolsListChanged": True}})

    assert ([1, 2], []) == ([each["id"] for each in stage.to_server], stage.kinds())


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"method": "notifications/initialized"}, id="that it is ready"),
        pytest.param({"method": "notifications/roots/list_changed"}, id="that its roots changed"),
        pytest.param({"method": "notifications/progress", "params": {"progress": 1}}, id="how far it is"),
        pytest.param({"method": "notifications/cancelled", "params": {"requestId": 9}}, id="that it gives up"),
        pytest.param({"method": "notifications/acme/typing"}, id="what nobody knows"),
        pytest.param({"id": "s", "result": {"roots": [{"uri": "file:///a"}]}}, id="where its roots are"),
        pytest.param({"id": "s", "result": {"role": "assistant", "content": {"text": "tea"}}}, id="what a model said"),
        pytest.param({"id": "s", "result": {"action": "accept", "content": {}}}, id="what a person said"),
        pytest.param({"id": None, "error": {"code": -32700, "message": "what?"}}, id="that it did not understand"),
    ],
)
def test_what_a_client_tells_passes_an_enforced_proxy(said: dict[str, Any]) -> None:
    """Notifications, and answers to what the server asked."""
    stage = Stage(enforced=True)

    stage.proxy.from_client(json.dumps({"jsonrpc": "2.0"} | said).encode())

    assert ([{"jsonrpc": "2.0"} | said], []) == (stage.to_server, stage.kinds())


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"id": 1, "method": "admin/run"}, id="a request"),
        pytest.param({"method": "admin/run"}, id="one that nobody waits for"),
        pytest.param({"id": 1, "method": "notifications/run"}, id="a notification with an id"),
        pytest.param({"id": 1, "method": "Tools/Call"}, id="a call in capitals"),
        pytest.param({"id": 1, "method": "tools/call "}, id="a call with a blank"),
        pytest.param({"id": 1, "method": ""}, id="an empty one"),
    ],
)
def test_a_method_that_nobody_knows_is_a_call_of_which_nothing_good_is_assumed(said: dict[str, Any]) -> None:
    """Watched, it passes and is recorded with its params; enforced, it waits for a person as any foreign tool does."""
    watched, enforced = Stage(), Stage(enforced=True)
    for stage in (watched, enforced):
        stage.proxy.from_client(json.dumps({"jsonrpc": "2.0", "params": {"do": "it"}} | said).encode())

    (body,) = watched.bodies(ToolRequested)
    assert ("mcp-method__shop", ("would_hold.tier.external-write",), 1) == (
        body.tool,
        body.flags,
        len(watched.to_server),
    )
    assert {"method": said["method"], "params": {"do": "it"}} == json.loads(watched.words("arguments")[0])["arguments"]
    assert ([], "tool.held", -32010) == (
        enforced.to_server,
        enforced.kinds()[-1],
        enforced.to_client[0]["error"]["code"],
    )


def test_a_method_that_nobody_knows_can_be_granted_and_no_permit_for_tools_means_it() -> None:
    """It is named below `methods`, apart from every tool."""
    for permit, passed in (("call:shop/methods/admin/run", [1]), ("call:shop/*", [])):
        origin = ProxyOrigin(by="user:ana", grant=Grant(may=read_scope([permit])))
        stage = Stage(enforced=True, server=Server(name="shop", local=True), origin=origin)

        stage.say("admin/run", 1)
        stage.say("admin/stop", 2)

        assert passed == [each["id"] for each in stage.to_server]
