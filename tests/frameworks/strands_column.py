"""Strands Agents with scripted models of its own kind."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from strands import Agent
from strands import tool as strands_tool
from strands.models.model import Model
from strands.multiagent import Swarm

from batonpass.adapters.strands import record
from batonpass.testing.doors import PERSON as DOOR_PERSON
from batonpass.testing.doors import Door, DoorConformance, Ending, HandoffConformance, Listener, Opened
from batonpass.testing.doors import Stage as DoorStage
from batonpass.testing.doors.stage import HELPERS
from tests.doors.test_python import PythonDoor
from tests.doors.tools import tools_on
from tests.frameworks.asked_model import OpenedFramework
from tests.frameworks.suite import (
    PERSON,
    TASK,
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


class StreamedModel(Model):
    """A model that streams one answer per request, in the framework's own form."""

    def update_config(self, **_: Any) -> None:
        """Take no settings."""

    def get_config(self) -> dict[str, Any]:
        """Return no settings."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Answer nothing of that kind."""
        raise NotImplementedError

    async def answer(self, messages: Any, system_prompt: Any, tool_specs: Any) -> str | list[Any]:
        """Return a text, or calls as name, id and arguments."""
        raise NotImplementedError

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **_: Any
    ) -> AsyncIterator[Any]:
        """Answer."""
        said = await self.answer(messages, system_prompt, tool_specs)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(said, str):
            yield {"contentBlockStart": {"start": {}}}
            for letter in said:
                yield {"contentBlockDelta": {"delta": {"text": letter}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
            return
        for name, call_id, arguments in said:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}


class ScriptedModel(StreamedModel):
    """A model that follows a script, and keeps what it was given."""

    def __init__(self, name: str, turns: Sequence[Any]) -> None:
        self._name = name
        self._turns = _turns(turns)
        self.given: list[str] = []

    async def answer(self, messages: Any, system_prompt: Any, tool_specs: Any) -> str | list[Any]:
        """Answer with the next turn."""
        told = [{"role": one["role"], "content": one["content"]} for one in messages]
        request = {"system": system_prompt, "messages": told, "tools": tool_specs}
        self.given.append(json.dumps(request, ensure_ascii=False, default=str))
        turn = next(self._turns)
        if isinstance(turn, Die):
            raise ProviderGoneError("the provider does not answer")
        if isinstance(turn, Say):
            return turn.text
        return [_call(one, f"call_{self._name}_{len(self.given)}_{number}") for number, one in enumerate(turn)]


def _turns(turns: Sequence[Any]) -> Iterator[Any]:
    """Return the turns of a model. One that passes the work on in a swarm says so before the next agent begins."""
    for turn in turns:
        yield turn
        if any(isinstance(one, Transfer) for one in _listed(turn)):
            yield Say("I passed it on")


def _call(asked: Use | Delegate | Transfer, call_id: str) -> tuple[str, str, Mapping[str, Any]]:
    match asked:
        case Use(tool, arguments):
            return tool, call_id, arguments
        case Delegate(to, task):
            return f"ask_{to}", call_id, {"input": task}
        case Transfer(to):
            return "handoff_to_agent", call_id, {"agent_name": to, "message": TASK}


class StrandsAgents(Driver):
    """Delegations are agents used as tools; transfers are handoffs in a swarm."""

    name: ClassVar = "strands"

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        return self._told(stage, script, record(by=PERSON, relay=stage.relay(), **options))

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        return self._told(stage, script, None)

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        agents, models = agents_of(stage, script, None)
        recorded = record(by=PERSON, relay=stage.relay(), **options)
        return told_of(models, recorded.resume(agents["lead"], which))

    def _told(self, stage: Stage, script: Script, recorded: Any) -> Told:
        passed = any(isinstance(one, Transfer) for turns in script.values() for turn in turns for one in _listed(turn))
        agents, models = agents_of(stage, script, None if passed else recorded)
        if not passed:
            return told_of(models, agents["lead"].invoke_async(WORDS))
        plugins = [] if recorded is None else [recorded]
        swarm = Swarm([agents[name] for name in script], entry_point=agents["lead"], plugins=plugins)
        return told_of(models, swarm.invoke_async(WORDS))


def _listed(turn: Any) -> Sequence[Any]:
    return turn if isinstance(turn, Sequence) else ()


def agents_of(stage: Stage, script: Script, recorded: Any) -> tuple[dict[str, Agent], dict[str, ScriptedModel]]:
    """Return the agents of a scene, and their models."""
    made: dict[str, Agent] = {}
    models: dict[str, ScriptedModel] = {}
    for name in ("checker", "editor", "lead"):
        models[name] = ScriptedModel(name, script.get(name, ()))
        made[name] = Agent(
            name=name,
            model=models[name],
            system_prompt=f"You are {name}.",
            tools=[
                *(strands_tool(one) for one in stage.tools().values()),
                *(child.as_tool(name=f"ask_{other}", description="Ask") for other, child in made.items()),
            ],
            plugins=[recorded] if name == "lead" and recorded is not None else [],
            callback_handler=None,
            retry_strategy=None,
        )
    return made, models


def told_of(models: Mapping[str, ScriptedModel], running: Any) -> Told:
    """Return what came of it."""
    answer, error = None, None
    try:
        answer = str(asyncio.run(running)).strip()
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    return Told(answer, error, {name: model.given for name, model in models.items() if model.given})


class TestStrands(FrameworkConformance):
    """The suite."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return StrandsAgents()


class AskedModel(StreamedModel):
    """A model that asks for what a test says."""

    def __init__(self, opened: OpenedFramework) -> None:
        self._opened = opened
        self._number = 0

    async def answer(self, messages: Any, system_prompt: Any, tool_specs: Any) -> str | list[Any]:
        """Answer with the next act."""
        results = [one["toolResult"] for one in messages[-1]["content"] if "toolResult" in one]
        result = str(next(iter(results[-1]["content"][0].values()))) if results else None
        said = await asyncio.to_thread(self._opened.turn, result)
        self._number += 1
        return said if isinstance(said, str) else [(said[0], f"call_{self._number}", said[1])]


class OpenedAgent(OpenedFramework):
    """An agent of the framework."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        recorded = record(
            by=DOOR_PERSON,
            relay=self.stage.relay(),
            grants=self.grants() if self.stage.handoff is None else {},
            items=self.stage.allowed.constraints,
            mode=self.stage.mode,
        )
        helpers = [
            Agent(name=name, model=ScriptedModel(name, [Say("done")] * 9), callback_handler=None).as_tool(
                name=f"ask_{name}", description="Ask"
            )
            for name in HELPERS
        ]
        name = "lead" if self.stage.handoff is None else "worker"
        tools = [*(strands_tool(one) for one in tools_on(self.stage).values()), *helpers]
        agent = Agent(
            name=name,
            model=AskedModel(self),
            tools=tools,
            plugins=[recorded] if self.stage.handoff is None else [],
            callback_handler=None,
            retry_strategy=None,
        )
        if self.stage.handoff is None:
            await agent.invoke_async("Do it")
        else:
            await recorded.resume(agent, self.stage.handoff.id)


class StrandsDoor(PythonDoor):
    """An agent of the framework that works for a person."""

    listener = Listener.MODEL
    cannot: ClassVar = {
        "interruptions": "a model is not ended in the middle of a call: its process is, as a program's",
        "rationale": "an agent that is used as a tool is given an input, and no rationale",
        "may": "the program says what agents may, and not the model that asks them",
    }

    def open(self, stage: DoorStage) -> Opened:
        """Start an agent."""
        if self.on_handoff:
            stage.offer()
        return OpenedAgent(stage)


class StrandsDoorOnHandoff(StrandsDoor):
    """An agent of the framework that works on a handoff; a held call ends its attempt."""

    agent = "worker"
    on_handoff = True
    ended_by = frozenset({Ending.HELD})


class TestDoor(DoorConformance):
    """The door suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return StrandsDoor()


class TestDoorHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return StrandsDoor()


class TestDoorOnHandoff(DoorConformance):
    """The door suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return StrandsDoorOnHandoff()
