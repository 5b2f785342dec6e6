"""Every tool × every role × somebody else's tree, from the table of the tools: nothing that HTTP refuses goes here."""

from typing import Any, Final

import pytest

from batonpass.model.base.ids import RunId
from batonpass.model.base.kinds import AccessRole
from batonpass.relay import Relay
from batonpass.server.mcp.run_handle import handle_of
from batonpass.server.mcp.tool_table import TOOLS
from batonpass.store.port import ReceiptQuery
from tests.unit.server.mcp.talk import by_token, by_user, code_of, data_of, run, talking
from tests.unit.server.test_every_route import Scene, a_scene

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "start": {"intent": "Fix it"},
    "hand_off": {"to": "helper", "task": "Help", "may": ["read:src/a"]},
    "accept": {},
    "ask": {"question": "Which?"},
    "answer": {"text": "this"},
    "decline": {"reason": "no"},
    "result": {},
    "judge": {"holds": True, "words": "seen"},
    "retry": {"reason": "again"},
    "cancel": {"reason": "no"},
    "record": {"item": {"type": "Decision", "value": {"what": "half-even"}}},
    "begin_call": {"tool": "search"},
    "finish_call": {"result": 1},
    "checkpoint": {"messages": []},
    "report": {"result": "done"},
    "close": {},
    "read_artifact": {"ref": "task"},
    "show": {},
    "search": {"pattern": "Fix"},
    "blame": {"where": "a.py:1"},
    "review": {},
    "waiting": {},
    "decide": {},
}
SHUT: Final = frozenset({"access.out_of_reach", "access.run_proof", "value.invalid", "id.not_found"})
HOW: Final = ("its own handle", "no handle", "the other's handle", "the other's proof", "a forged one")
ROLES: Final = tuple(role.value for role in AccessRole)
LAST: Final = frozenset({"close", "cancel", "decline"})  # nothing can be done after these
# What names nothing but the own run: it has nothing to do with anybody else's tree.
IN_OWN_RUN: Final = frozenset({"hand_off", "record", "begin_call", "checkpoint", "report", "close"})


def arguments(scene: Scene, tool: str, handle: str | None) -> dict[str, Any]:
    """Return what a tool is called with, about Ana's tree."""
    known = next(one for one in TOOLS if one.name == tool).known
    names = {"handoff": scene.names["handoff"], "call": scene.names["call"], "id": scene.names["run"]}
    given = {name: value for name, value in names.items() if name in known}
    if handle is not None and "run" in known:
        given["run"] = handle
    return {**given, **EXAMPLES[tool]}


def ordered() -> list[str]:
    """Return the names of all tools; those after which nothing can be done come last."""
    return sorted(EXAMPLES, key=lambda name: name in LAST)


def for_agents() -> list[str]:
    """Return the names of the tools for agents that have a run."""
    roles = {one.name: one.roles for one in TOOLS}
    return [name for name in ordered() if "agent" in roles[name] and name != "start"]


def receipts_of(scene: Scene) -> int:
    """Return how many receipts there are in Ana's tree."""
    with scene.house.relay.store.view() as view:
        return sum(1 for _ in view.find_receipts(ReceiptQuery(root=RunId(scene.names["run"]))))


@pytest.fixture
def scene(relay: Relay) -> Scene:
    """Return two trees of two agents."""
    return a_scene(relay)


def test_every_tool_has_an_example_and_says_what_it_takes() -> None:
    """A tool is in the tests below as soon as it is in the table."""
    closed = all(one.schema["additionalProperties"] is False for one in TOOLS)
    wrong = {one.name for one in TOOLS if "by" in one.known or not set(one.schema["required"]) <= one.known}

    assert {one.name for one in TOOLS} == set(EXAMPLES)
    assert (True, set()) == (closed, wrong)


@pytest.mark.parametrize("role", ROLES)
def test_a_role_is_shown_and_may_use_exactly_the_tools_of_the_table(scene: Scene, role: str) -> None:
    """What is not shown is refused as well, and changes nothing."""
    token = scene.house.everybody[role]
    handle = handle_of(scene.ana.proof or "") if role == "agent" else None

    async def talk() -> tuple[set[str], set[str], list[str]]:
        refused, changed = set(), []
        async with talking(by_token(scene.house.plane, token)) as own:
            shown = {one.name for one in (await own.client.list_tools()).tools}
            for name in ordered():
                before = scene.recorded()
                if await own.code(name, **arguments(scene, name, handle)) == "access.role":
                    refused.add(name)
                    changed += [name] if scene.recorded() != before else []
        return shown, refused, changed

    shown, refused, changed = run(talk)
    allowed = {one.name for one in TOOLS if role in one.roles}

    assert (allowed, set(EXAMPLES) - allowed, []) == (shown, refused, changed)


@pytest.mark.parametrize(
    "how", ["its own handle", "no handle", "the other's handle", "the other's proof", "a forged one"]
)
def test_an_agent_reaches_nothing_of_somebody_elses_tree(scene: Scene, how: str) -> None:
    """It reads no run, handoff or receipt of it, and writes no receipt in it, whatever it gives as `run`."""
    own, theirs = scene.ben.proof or "", scene.ana.proof or ""
    handles = {
        "its own handle": handle_of(own),
        "no handle": None,
        "the other's handle": handle_of(theirs),
        "the other's proof": theirs,
        "a forged one": f"{scene.names['run']}.{handle_of(own).partition('.')[2]}",
    }
    ben = scene.ben.token or ""

    async def talk() -> dict[str, Any]:
        let_in: dict[str, Any] = {}
        async with talking(by_token(scene.house.plane, ben)) as visit:
            for name in for_agents():
                if how == "its own handle" and name in IN_OWN_RUN:
                    continue
                result = await visit.call(name, **arguments(scene, name, handles[how]))
                if name == "search" and how == "its own handle":
                    if scene.names["receipt"] in {match["receipt"] for match in data_of(result)["matches"]}:
                        let_in[name] = "found"
                elif code_of(result) not in SHUT:
                    let_in[name] = code_of(result)
        return let_in

    before = receipts_of(scene)

    assert {} == run(talk)
    assert before == receipts_of(scene)


def test_an_agent_with_the_handle_of_its_run_is_let_in(scene: Scene) -> None:
    """The test above would pass if nobody were let in at all."""
    handle, token = handle_of(scene.ana.proof or ""), scene.ana.token or ""

    async def talk() -> dict[str, str]:
        shut = {}
        async with talking(by_token(scene.house.plane, token)) as own:
            for name in for_agents():
                code = await own.code(name, **arguments(scene, name, handle)) or ""
                if code.startswith(("access.", "value.")):
                    shut[name] = code
        return shut

    assert {} == run(talk)


def test_the_model_of_a_local_user_reads_everything_and_decides_nothing(scene: Scene) -> None:
    """Without a run it may only read, as its user may on the command line; nothing is written."""
    before = scene.recorded()

    async def talk() -> set[str]:
        async with talking(by_user(scene.house.plane)) as own:
            names = [one.name for one in TOOLS if one.name not in {"start", "decide"}]
            return {name for name in names if await own.code(name, **arguments(scene, name, None)) is None}

    assert {one.name for one in TOOLS if one.reads} == run(talk)
    assert before == scene.recorded()
