"""PydanticAI with its own function models."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from batonpass import current_run
from batonpass.adapters.pydantic_ai import record
from batonpass.model.bodies.body import HandoffInitiated, RunClosed, RunStarted, RunSuspended, ToolCompleted, ToolFailed
from batonpass.testing.doors import PERSON as DOOR_PERSON
from batonpass.testing.doors.stage import HELPERS
from tests.doors.tools import tools_on
from tests.frameworks.asked_model import OpenedFramework
from tests.frameworks.faults import FaultConformance
from tests.frameworks.framework_door import AttemptDoor, HandingDoor, RootDoor
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


class PydanticAI(Driver):
    """Delegations are runs inside of tools; there are no transfers."""

    name: ClassVar = "pydantic-ai"
    cannot: ClassVar = {"accepted_only_when_it_starts": "it has no transfers that could be dropped"}

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        recorded = record(**stage.recording(options), delegates=DELEGATES)
        agents, given = _agents(stage, script, [recorded])
        return _told(given, agents["lead"].run(WORDS))

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        agents, given = _agents(stage, script, [])
        return _told(given, agents["lead"].run(WORDS))

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        recorded = record(**stage.recording(options), delegates=DELEGATES)
        agents, given = _agents(stage, script, [recorded])
        return _told(given, recorded.resume(agents[which], which))


def _agents(
    stage: Stage, script: Script, capabilities: list[Any]
) -> tuple[dict[str, Agent[None, str]], dict[str, list[str]]]:
    made: dict[str, Agent[None, str]] = {}
    given: dict[str, list[str]] = {}
    for name in ("checker", "editor", "lead"):
        tools = [*stage.tools().values(), *(_asking(child, agent) for child, agent in made.items())]
        model = _scripted(name, script, given)
        made[name] = Agent(model, name=name, instructions=stage.prompt_of(name), tools=tools, capabilities=capabilities)
    return made, given


def _asking(name: str, agent: Agent[None, str]) -> Any:
    async def ask(task: str) -> str:
        """Ask another agent."""
        return (await agent.run(task)).output

    ask.__name__ = f"ask_{name}"
    return ask


def _scripted(name: str, script: Script, given: dict[str, list[str]]) -> FunctionModel:
    turns = iter(script.get(name, ()))

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
        for message in told:
            for varying in ("timestamp", "run_id", "conversation_id", "instructions"):
                message.pop(varying, None)
            for part in message["parts"]:
                part.pop("timestamp", None)
        request = {"system": info.instructions, "messages": told}
        given.setdefault(name, []).append(json.dumps(request, ensure_ascii=False, default=str))
        turn = next(turns)
        if isinstance(turn, Die):
            raise ProviderGoneError("the provider does not answer")
        if isinstance(turn, Say):
            return ModelResponse(parts=[TextPart(turn.text)])
        place = len(given[name])
        return ModelResponse(parts=[_call(one, f"call_{name}_{place}_{number}") for number, one in enumerate(turn)])

    return FunctionModel(answer)


def _call(asked: Use | Delegate | Transfer, call_id: str) -> ToolCallPart:
    match asked:
        case Use(tool, arguments):
            return ToolCallPart(tool, dict(arguments), call_id)
        case Delegate(to, task):
            return ToolCallPart(f"ask_{to}", {"task": task}, call_id)
        case Transfer():
            raise NotImplementedError


def _told(given: Mapping[str, list[str]], running: Any) -> Told:
    answer, error = None, None
    try:
        answer = asyncio.run(running).output
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    return Told(answer, error, given)


class TestPydanticAI(FrameworkConformance, FaultConformance):
    """The suite."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return PydanticAI()


class OpenedAgent(OpenedFramework):
    """An agent of the framework."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        number = 0

        async def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            nonlocal number
            number += 1
            returned = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
            said = await asyncio.to_thread(self.turn, str(returned[-1].content) if returned else None)
            if isinstance(said, str):
                return ModelResponse(parts=[TextPart(said)])
            tool, arguments = said
            if tool.startswith("ask_"):
                arguments = {"task": arguments["input"]}
            return ModelResponse(parts=[ToolCallPart(tool, dict(arguments), f"call_{number}")])

        recorded = record(
            by=DOOR_PERSON,
            relay=self.stage.relay(),
            grants=self.grants() if self.stage.handoff is None else {},
            items=self.stage.allowed.constraints,
            mode=self.stage.mode,
            delegates=[f"ask_{name}" for name in HELPERS],
        )
        helpers = [_asking(name, Agent(FunctionModel(_done), name=name, capabilities=[recorded])) for name in HELPERS]
        name = "lead" if self.stage.handoff is None else "worker"
        tools = [*tools_on(self.stage).values(), *helpers]
        agent = Agent(FunctionModel(answer), name=name, tools=tools, capabilities=[recorded])
        if self.stage.handoff is None:
            await agent.run("Do it")
        else:
            await recorded.resume(agent, self.stage.handoff.id)


def _done(*_: Any) -> ModelResponse:
    return ModelResponse(parts=[TextPart("done")])


class TestDoor(RootDoor):
    """The door suite, for a root."""

    opened: ClassVar = OpenedAgent


class TestDoorHandsOff(HandingDoor):
    """The table of handoffs, for a root."""

    opened: ClassVar = OpenedAgent


class TestDoorOnHandoff(AttemptDoor):
    """The door suite, for an attempt at a handoff."""

    opened: ClassVar = OpenedAgent


# What only this framework has.


def test_an_approval_is_a_deferred_tool(stage: Stage) -> None:
    """A program that takes deferred requests gets the held call as one, and goes on with its result once approved."""
    stage.policy = '[[rules]]\nname = "ask-first"\non = "call"\ntool = "pay"\ngate = "approve"\n'
    turns = iter([ModelResponse(parts=[ToolCallPart("pay", {"to": "bob", "amount": 10}, "c")]), _done()])
    recorded = record(by=PERSON, relay=stage.relay(), mode="enforced", grants={"lead": ["pay:**"]})
    agent = Agent(
        FunctionModel(lambda *_: next(turns)),
        name="lead",
        output_type=[str, DeferredToolRequests],
        tools=[stage.tools()["pay"]],
        capabilities=[recorded],
    )

    paused = asyncio.run(agent.run(WORDS))
    assert isinstance(paused.output, DeferredToolRequests)
    assert 1 == len(stage.recorded(RunSuspended))
    (waiting,) = [one for one in stage.relays[0].resume().held_work() if one.approved is None]
    stage.relay().held_call(waiting.id).approve(by=PERSON, reason="bob it is")
    results = paused.output.build_results(approve_all=True)
    resumed = asyncio.run(recorded.resume(agent, "lead", deferred_tool_results=results))

    assert ("done", ["pay bob 10"]) == (resumed.output, stage.made)


def test_an_agent_in_a_tool_that_nobody_declared_is_recorded_with_its_call(stage: Stage) -> None:
    """The tool is a call, and what runs inside of it a handoff from the same agent."""
    recorded = record(by=PERSON, relay=stage.relay())
    child = Agent(FunctionModel(_done), name="child", capabilities=[recorded])
    turns = iter([ModelResponse(parts=[ToolCallPart("ask_child", {"task": "t"}, "c")]), _done()])
    agent = Agent(
        FunctionModel(lambda *_: next(turns)), name="lead", tools=[_asking("child", child)], capabilities=[recorded]
    )

    asyncio.run(agent.run(WORDS))

    assert ["child"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert 1 == len(stage.recorded(ToolCompleted))


def test_a_tool_finds_its_run_and_a_failure_is_one(stage: Stage) -> None:
    """Code in a tool finds the run of its agent; if it raises, the call failed and the run raises as without us."""

    def broken() -> str:
        """Break."""
        raise LookupError(current_run().agent)

    turns = iter([ModelResponse(parts=[ToolCallPart("broken", {}, "c")])])
    recorded = record(by=PERSON, relay=stage.relay())
    agent = Agent(FunctionModel(lambda *_: next(turns)), name="lead", tools=[broken], capabilities=[recorded])

    with pytest.raises(LookupError, match="lead"):
        asyncio.run(agent.run(WORDS))

    assert 1 == len(stage.recorded(ToolFailed))
    assert "failed" == stage.recorded(RunClosed)[0].outcome


def test_streamed_runs_are_recorded(stage: Stage) -> None:
    """A run whose text is streamed is closed when it has ended."""

    async def stream(*_: Any) -> Any:
        yield "one "
        yield "two"

    recorded = record(by=PERSON, relay=stage.relay())
    agent = Agent(FunctionModel(stream_function=stream), name="lead", capabilities=[recorded])

    async def main() -> str:
        async with agent.run_stream(WORDS) as streamed:
            return "".join([part async for part in streamed.stream_text(delta=True)])

    assert "one two" == asyncio.run(main())
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))
