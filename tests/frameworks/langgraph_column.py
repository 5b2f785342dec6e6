"""LangGraph and LangChain with the fake chat models of langchain_core."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph_swarm import create_handoff_tool, create_swarm
from pydantic import Field

from batonpass.adapters.langgraph import record
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

DELEGATES = ("ask_checker", "ask_editor")
AGENTS = ("checker", "editor", "lead")


class Scripted(GenericFakeChatModel):
    """A model that answers from a script, and keeps what it was given."""

    given: list[str] = Field(default_factory=list)
    turns: Any

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Take any tools."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        told = [message for message in messages if message.type != "system"]
        system = [message.content for message in messages if message.type == "system"]
        request = {"system": system, "messages": [_stable(one) for one in messages_to_dict(told)]}
        self.given.append(json.dumps(request, ensure_ascii=False))
        del stop, run_manager
        following = next(self.turns)
        if isinstance(following, Exception):
            raise following
        return ChatResult(generations=[ChatGeneration(message=following)])


def _stable(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without the ids that LangChain draws at random."""
    message["data"].pop("id", None)
    return message


def scripted(*turns: Any, name: str = "agent") -> Scripted:
    """Return a model that plays these turns."""
    answers = [_answer(turn, f"{name}_{number}") for number, turn in enumerate(turns)]
    return Scripted(messages=iter(()), turns=iter(answers))


def _answer(turn: Any, place: str) -> Any:
    if isinstance(turn, Say):
        return AIMessage(turn.text)
    if isinstance(turn, Die):
        return ProviderGoneError("the provider does not answer")
    return AIMessage("", tool_calls=[_call(one, f"call_{place}_{number}") for number, one in enumerate(turn)])


def _call(asked: Use | Delegate | Transfer, call_id: str) -> Any:
    match asked:
        case Use(tool, arguments):
            return {"name": tool, "args": dict(arguments), "id": call_id, "type": "tool_call"}
        case Delegate(to, task):
            return {"name": f"ask_{to}", "args": {"task": task}, "id": call_id, "type": "tool_call"}
        case Transfer(to):
            return {"name": f"transfer_to_{to}", "args": {}, "id": call_id, "type": "tool_call"}


def _asking(name: str, agent: Any) -> StructuredTool:
    def ask(task: str) -> str:
        return str(agent.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)

    async def ask_async(task: str) -> str:
        return str((await agent.ainvoke({"messages": [HumanMessage(task)]}))["messages"][-1].content)

    return StructuredTool.from_function(ask, ask_async, name=f"ask_{name}", description=f"Ask {name}")


class LangGraph(Driver):
    """Delegations are agents that are run inside of tools; transfers are those of langgraph-swarm."""

    name: ClassVar = "langgraph"

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        recorded = record(by=PERSON, relay=stage.relay(), delegates=DELEGATES, **options)
        agents, models = _agents(stage, script, [recorded])
        return self._told(models, _swarm(agents), {"messages": [HumanMessage(WORDS)]})

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        agents, models = _agents(stage, script, [])
        return self._told(models, _swarm(agents), {"messages": [HumanMessage(WORDS)]})

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        recorded = record(by=PERSON, relay=stage.relay(), delegates=DELEGATES, **options)
        agents, models = _agents(stage, script, [recorded])
        return _told(models, lambda: recorded.resume(agents[which], which))

    def _told(self, models: Mapping[str, Scripted], graph: Any, given: Any) -> Told:
        return _told(models, lambda: graph.invoke(given))


class LangGraphAsync(LangGraph):
    """The same with the asynchronous methods."""

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        recorded = record(by=PERSON, relay=stage.relay(), delegates=DELEGATES, **options)
        agents, models = _agents(stage, script, [recorded])
        return _told(models, lambda: asyncio.run(recorded.aresume(agents[which], which)))

    def _told(self, models: Mapping[str, Scripted], graph: Any, given: Any) -> Told:
        return _told(models, lambda: asyncio.run(graph.ainvoke(given)))


class LangGraphStreamed(LangGraph):
    """The same, streamed."""

    def _told(self, models: Mapping[str, Scripted], graph: Any, given: Any) -> Told:
        return _told(models, lambda: list(graph.stream(given, stream_mode="values"))[-1])


def _agents(stage: Stage, script: Script, middleware: list[Any]) -> tuple[dict[str, Any], dict[str, Scripted]]:
    agents: dict[str, Any] = {}
    models: dict[str, Scripted] = {}
    for name in AGENTS:
        tools = [StructuredTool.from_function(one) for one in stage.tools().values()]
        tools += [_asking(child, agent) for child, agent in agents.items()]
        tools += [create_handoff_tool(agent_name=other) for other in AGENTS if other != name]
        models[name] = scripted(*script.get(name, ()), name=name)
        agents[name] = create_agent(
            models[name], tools, name=name, system_prompt=f"You are {name}.", middleware=middleware
        )
    return agents, models


def _swarm(agents: Mapping[str, Any], **options: Any) -> Any:
    return create_swarm(list(agents.values()), default_active_agent="lead").compile(**options)


def _told(models: Mapping[str, Scripted], run: Any) -> Told:
    answer, error = None, None
    try:
        answer = run()["messages"][-1].content
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    return Told(answer, error, {name: model.given for name, model in models.items() if model.given})


class TestLangGraph(FrameworkConformance):
    """The suite."""

    @pytest.fixture(params=[LangGraph, LangGraphAsync, LangGraphStreamed])
    def driver(self, request: pytest.FixtureRequest) -> Driver:
        """Return the driver."""
        return request.param()


class OpenedAgent(OpenedFramework):
    """An agent whose model asks for what a test says."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        recorded = record(
            by=DOOR_PERSON,
            relay=self.stage.relay(),
            grants=self.grants() if self.stage.handoff is None else {},
            items=self.stage.allowed.constraints,
            mode=self.stage.mode,
            delegates=[f"ask_{name}" for name in HELPERS],
        )
        helpers = [
            _asking(name, create_agent(scripted(*[Say("done")] * 9), [], name=name, middleware=[recorded]))
            for name in HELPERS
        ]
        name = "lead" if self.stage.handoff is None else "worker"
        tools = [StructuredTool.from_function(one) for one in tools_on(self.stage).values()]
        model = Asked(messages=iter(()), opened=self)
        agent = create_agent(model, [*tools, *helpers], name=name, middleware=[recorded])
        options = {"config": {"recursion_limit": 1000}}
        if self.stage.handoff is None:
            await agent.ainvoke({"messages": [HumanMessage("Do it")]}, **options)
        else:
            await recorded.aresume(agent, self.stage.handoff.id, **options)


class Asked(GenericFakeChatModel):
    """A model that asks for what a test says."""

    opened: Any
    number: int = 0

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        """Take any tools."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        del stop, run_manager
        last = messages[-1]
        said = self.opened.turn(last.content if isinstance(last, ToolMessage) else None)
        self.number += 1
        if isinstance(said, str):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])
        tool, arguments = said
        arguments = {"task": arguments["input"]} if tool.startswith("ask_") else dict(arguments)
        call = {"name": tool, "args": arguments, "id": f"call_{self.number}", "type": "tool_call"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


class LangGraphDoor(PythonDoor):
    """An agent that works for a person."""

    listener = Listener.MODEL
    cannot: ClassVar = {
        "interruptions": "a model is not ended in the middle of a call: its process is, as a program's",
        "rationale": "an agent that is run in a tool is given messages, and no rationale",
        "may": "the program says what agents may, and not the model that asks them",
    }

    def open(self, stage: DoorStage) -> Opened:
        """Start an agent."""
        if self.on_handoff:
            stage.offer()
        return OpenedAgent(stage)


class LangGraphDoorOnHandoff(LangGraphDoor):
    """An agent that works on a handoff; a held call ends its attempt."""

    agent = "worker"
    on_handoff = True
    ended_by = frozenset({Ending.HELD})


class TestDoor(DoorConformance):
    """The door suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return LangGraphDoor()


class TestDoorHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return LangGraphDoor()


class TestDoorOnHandoff(DoorConformance):
    """The door suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return LangGraphDoorOnHandoff()


# What only this framework has.


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Return a fresh directory, and work there."""
    monkeypatch.chdir(tmp_path)
    made = Stage(tmp_path)
    yield made
    made.close()
