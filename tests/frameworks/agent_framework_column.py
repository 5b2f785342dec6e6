"""Microsoft Agent Framework with scripted clients."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)
from agent_framework import tool as af_tool
from agent_framework.orchestrations import HandoffBuilder

from batonpass.adapters.agent_framework import record
from batonpass.testing.doors import PERSON as DOOR_PERSON
from batonpass.testing.doors import Door, DoorConformance, Ending, HandoffConformance, Listener, Opened
from batonpass.testing.doors import Stage as DoorStage
from batonpass.testing.doors.stage import HELPERS
from tests.doors.test_python import PythonDoor
from tests.doors.tools import tools_on
from tests.frameworks.asked_model import OpenedFramework
from tests.frameworks.suite import (
    PERSON,
    WORDS,
    Delegate,
    Die,
    Driver,
    FrameworkConformance,
    ProviderGoneError,
    Say,
    Script,
    Stage,
    Told,
    Transfer,
    Use,
)

RANDOM = re.compile(r"af-call-[0-9a-f]{32}")  # the framework's own number of a call


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A client whose model says what a script says."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
        if not stream:
            return self._respond(messages, options)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for one in (await self._respond(messages, options)).messages:
                yield ChatResponseUpdate(role="assistant", contents=one.contents)

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    async def _respond(self, messages: Any, options: Any) -> ChatResponse:
        said = await asyncio.to_thread(self._answer, list(messages), dict(options))
        return ChatResponse(messages=[Message(role="assistant", contents=said)], response_id="r")


def plain(messages: list[Message], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is given as JSON."""
    system = [options.get("instructions"), *(one.text for one in messages if one.role == "system")]
    told = json.dumps([one.to_dict() for one in messages if one.role != "system"], default=str)
    return {"system": system, "messages": json.loads(RANDOM.sub("af-call", told))}


class AgentFramework(Driver):
    """Delegations are agents used as tools; transfers are those of a handoff workflow."""

    name: ClassVar = "agent-framework"

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        recorded = record(by=PERSON, relay=stage.relay(), **options)
        agents, given = _agents(stage, script, [recorded])
        return _told(given, _work(agents, script))

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        agents, given = _agents(stage, script, [])
        return _told(given, _work(agents, script))

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        recorded = record(by=PERSON, relay=stage.relay(), **options)
        agents, given = _agents(stage, script, [recorded])
        return _told(given, recorded.resume(agents[which], which))


async def _work(agents: Mapping[str, Agent], script: Script) -> Any:
    turns = [turn for turn in script["lead"] if not isinstance(turn, Say | Die)]
    if not any(isinstance(one, Transfer) for turn in turns for one in turn):
        return await agents["lead"].run(WORDS)
    workflow = HandoffBuilder(participants=list(agents.values())).with_start_agent(agents["lead"]).build()
    events = [event async for event in workflow.run(WORDS, stream=True)]
    return events[-1]


def _agents(stage: Stage, script: Script, middleware: list[Any]) -> tuple[dict[str, Agent], dict[str, list[str]]]:
    made: dict[str, Agent] = {}
    given: dict[str, list[str]] = {}
    for name in ("checker", "editor", "lead"):
        tools: list[Any] = [af_tool(function) for function in stage.tools().values()]
        tools += [agent.as_tool(name=f"ask_{child}") for child, agent in made.items()]
        made[name] = Agent(
            client=ScriptedClient(_scripted(name, script, given)),
            name=name,
            instructions=f"You are {name}.",
            tools=tools,
            middleware=middleware,
            require_per_service_call_history_persistence=True,
        )
    return made, given


def _scripted(name: str, script: Script, given: dict[str, list[str]]) -> Any:
    turns = iter(script.get(name, ()))

    def answer(messages: list[Message], options: Mapping[str, Any]) -> list[Content]:
        given.setdefault(name, []).append(json.dumps(plain(messages, options), ensure_ascii=False))
        turn = next(turns)
        if isinstance(turn, Die):
            raise ProviderGoneError("the provider does not answer")
        if isinstance(turn, Say):
            return [Content.from_text(turn.text)]
        place = len(given[name])
        return [_call(one, f"call_{name}_{place}_{number}") for number, one in enumerate(turn)]

    return answer


def _call(asked: Use | Delegate | Transfer, call_id: str) -> Content:
    match asked:
        case Use(tool, arguments):
            return Content.from_function_call(call_id=call_id, name=tool, arguments=dict(arguments))
        case Delegate(to, task):
            return Content.from_function_call(call_id=call_id, name=f"ask_{to}", arguments={"task": task})
        case Transfer(to):
            return Content.from_function_call(call_id=call_id, name=f"handoff_to_{to}", arguments={})


def _told(given: Mapping[str, list[str]], running: Any) -> Told:
    answer, error = None, None
    try:
        answer = getattr(asyncio.run(running), "text", None)
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    return Told(answer, error, given)


class TestAgentFramework(FrameworkConformance):
    """The suite."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return AgentFramework()


class OpenedAgent(OpenedFramework):
    """An agent of the framework."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        number = 0

        def answer(messages: list[Message], _: Any) -> list[Content]:
            nonlocal number
            number += 1
            returned = [part for one in messages for part in one.contents if part.type == "function_result"]
            said = self.turn(str(returned[-1].result) if returned else None)
            if isinstance(said, str):
                return [Content.from_text(said)]
            tool, arguments = said
            if tool.startswith("ask_"):
                arguments = {"task": arguments["input"]}
            return [Content.from_function_call(call_id=f"call_{number}", name=tool, arguments=dict(arguments))]

        recorded = record(
            by=DOOR_PERSON,
            relay=self.stage.relay(),
            grants=self.grants() if self.stage.handoff is None else {},
            items=self.stage.allowed.constraints,
            mode=self.stage.mode,
        )
        helpers = [an_agent(name, lambda *_: [Content.from_text("done")], [], recorded) for name in HELPERS]
        tools: list[Any] = [af_tool(function) for function in tools_on(self.stage).values()]
        tools += [helper.as_tool(name=f"ask_{helper.name}") for helper in helpers]
        name = "lead" if self.stage.handoff is None else "worker"
        agent = an_agent(name, answer, tools, recorded)
        if self.stage.handoff is None:
            await agent.run("Do it")
        else:
            await recorded.resume(agent, self.stage.handoff.id)


def an_agent(name: str, answer: Any, tools: list[Any], *middleware: Any) -> Agent:
    """Return an agent with a scripted client."""
    return Agent(client=ScriptedClient(answer), name=name, tools=tools, middleware=list(middleware))


class AgentFrameworkDoor(PythonDoor):
    """An agent of the framework that works for a person."""

    listener = Listener.MODEL
    cannot: ClassVar = {
        "interruptions": "a model is not ended in the middle of a call: its process is, as a program's",
        "rationale": "an agent that is used as a tool is given a task, and no rationale",
        "may": "the program says what agents may, and not the model that asks them",
    }

    def open(self, stage: DoorStage) -> Opened:
        """Start an agent."""
        if self.on_handoff:
            stage.offer()
        return OpenedAgent(stage)


class AgentFrameworkDoorOnHandoff(AgentFrameworkDoor):
    """An agent of the framework that works on a handoff; a held call ends its attempt."""

    agent = "worker"
    on_handoff = True
    ended_by = frozenset({Ending.HELD})


class TestDoor(DoorConformance):
    """The door suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AgentFrameworkDoor()


class TestDoorHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AgentFrameworkDoor()


class TestDoorOnHandoff(DoorConformance):
    """The door suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AgentFrameworkDoorOnHandoff()
