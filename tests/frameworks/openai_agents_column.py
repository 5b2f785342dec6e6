"""The OpenAI Agents SDK with its own scripted models."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

import pytest
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunHooks,
    Runner,
    RunResultStreaming,
    RunState,
    SQLiteSession,
    Usage,
    WebSearchTool,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.testing import ScriptedModel, assistant_message, function_call

from batonpass import current_run
from batonpass.adapters.openai_agents import record
from batonpass.model.bodies.body import (
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    RunClosed,
    RunStarted,
    ToolCompleted,
    ToolFailed,
)
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

set_tracing_disabled(disabled=True)


class OpenAIAgents(Driver):
    """Delegations are agents used as tools; transfers are the SDK's handoffs."""

    name: ClassVar = "openai-agents"

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        agents = _agents(stage, script)
        with record(**stage.recording(options)):
            return _told(agents, Runner.run(agents["lead"], WORDS))

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        agents = _agents(stage, script)
        return _told(agents, Runner.run(agents["lead"], WORDS))

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        agents = _agents(stage, script)
        with record(**stage.recording(options)) as recording:
            return _told(agents, recording.resume(agents["lead"], which))


def _agents(stage: Stage, script: Script) -> dict[str, Agent[Any]]:
    tools = [function_tool(one) for one in stage.tools().values()]
    made: dict[str, Agent[Any]] = {}
    for name in ("checker", "editor", "lead"):
        steps = [_step(turn, f"{name}_{number}") for number, turn in enumerate(script.get(name, ()))]
        children = [agent.as_tool(f"ask_{child}", f"Ask {child}") for child, agent in made.items()]
        made[name] = Agent(
            name=name,
            instructions=stage.prompt_of(name),
            model=ScriptedModel(steps),
            tools=[*tools, *children],
            handoffs=list(made.values()),
        )
    return made


def _step(turn: Any, place: str) -> Any:
    if isinstance(turn, Say):
        return [assistant_message(turn.text)]
    if isinstance(turn, Die):
        return ProviderGoneError("the provider does not answer")
    return [_call(one, f"call_{place}_{number}") for number, one in enumerate(turn)]


def _call(asked: Use | Delegate | Transfer, call_id: str) -> Any:
    match asked:
        case Use(tool, arguments):
            return function_call(tool, dict(arguments), call_id=call_id)
        case Delegate(to, task):
            return function_call(f"ask_{to}", {"input": task}, call_id=call_id)
        case Transfer(to):
            return function_call(f"transfer_to_{to}", {}, call_id=call_id)


def _told(agents: Mapping[str, Agent[Any]], running: Any) -> Told:
    answer, error = None, None
    try:
        answer = asyncio.run(running).final_output
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    given = {
        name: [
            json.dumps({"system": call.system_instructions, "messages": call.input}, default=str)
            for call in agent.model.calls
        ]
        for name, agent in agents.items()
        if agent.model.calls
    }
    return Told(answer, error, given)


class TestOpenAIAgents(FrameworkConformance, FaultConformance):
    """The suite."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return OpenAIAgents()


class AskedModel(Model):
    """A model that asks for what a test says."""

    def __init__(self, opened: OpenedFramework) -> None:
        self._opened = opened
        self._number = 0

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002 - the SDK's own
        """Answer with the next act."""
        outputs = [one["output"] for one in input if one.get("type") == "function_call_output"]
        said = await asyncio.to_thread(self._opened.turn, outputs[-1] if outputs else None)
        self._number += 1
        output = (
            assistant_message(said)
            if isinstance(said, str)
            else function_call(said[0], dict(said[1]), call_id=f"call_{self._number}")
        )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        """Stream nothing."""
        raise NotImplementedError


class OpenedAgent(OpenedFramework):
    """An agent of the SDK."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        # A strict schema has no free mappings.
        tools = [function_tool(one, strict_mode=False) for one in tools_on(self.stage).values()]
        helpers = [
            Agent(name=name, model=ScriptedModel([[assistant_message("done")]] * 9)).as_tool(f"ask_{name}", "Ask")
            for name in HELPERS
        ]
        name = "lead" if self.stage.handoff is None else "worker"
        agent = Agent(name=name, model=AskedModel(self), tools=[*tools, *helpers])
        options: dict[str, Any] = {
            "grants": self.grants() if self.stage.handoff is None else {},
            "items": self.stage.allowed.constraints,
            "mode": self.stage.mode,
        }
        with record(by=DOOR_PERSON, relay=self.stage.relay(), **options) as recording:
            if self.stage.handoff is None:
                await Runner.run(agent, "Do it", max_turns=100)
            else:
                await recording.resume(agent, self.stage.handoff.id, max_turns=100)


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


def test_a_refused_transfer_returns_to_its_source(stage: Stage) -> None:
    """The conversation stays where it is, and the model reads why."""
    script: Script = {"lead": [[Transfer("editor")], Say("I do it myself")], "editor": [Say("ok")]}
    stage.policy = (
        '[policy]\nenforce = true\n\n[[rules]]\nname = "no-editor"\non = "handoff"\nagent = "editor"\ngate = "deny"\n'
    )

    told = OpenAIAgents().play(stage, script)

    assert "I do it myself" == told.answer
    assert "editor" not in told.given
    assert "Denied, and not made" in told.given["lead"][1]
    assert "handoff.refused" == stage.recorded(HandoffFailed)[0].error


def test_streamed_events_are_the_same(stage: Stage) -> None:
    """Streamed with and without us, the events and the answer are the same; the record is complete afterwards."""
    script: Script = {
        "lead": [[Transfer("editor")]],
        "editor": [[Use("write_file", {"path": "a", "text": "b"})], Say("ok")],
    }

    async def stream(agent: Agent[Any]) -> tuple[list[str], str]:
        streamed = Runner.run_streamed(agent, WORDS)
        events = [_event(event) async for event in streamed.stream_events()]
        return events, streamed.final_output

    without = asyncio.run(stream(_agents(stage, script)["lead"]))
    with record(by=PERSON, relay=stage.relay()):
        recorded = asyncio.run(stream(_agents(stage, script)["lead"]))

    assert without == recorded
    assert ["editor"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert 1 == len(stage.recorded(HandoffCompleted)) == len(stage.recorded(RunClosed))


def _event(event: Any) -> str:
    item = getattr(event, "item", None)
    return f"{event.type} {getattr(event, 'name', '')} {type(item).__name__}"


def test_a_stream_that_nobody_reads_to_its_end_is_recorded(stage: Stage) -> None:
    """A cancelled stream ends its runs: nothing stays open for ever."""
    agents = _agents(stage, {"lead": [[Use("write_file", {"path": "a", "text": "b"})], Say("done")]})

    async def leave() -> None:
        streamed = Runner.run_streamed(agents["lead"], WORDS)
        async for event in streamed.stream_events():
            if getattr(event, "name", None) == "tool_called":
                streamed.cancel()
        await asyncio.sleep(0.1)

    with record(by=PERSON, relay=stage.relay()):
        asyncio.run(leave())

    assert len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


def test_synchronous_programs_are_recorded(stage: Stage) -> None:
    """`run_sync` is recorded as `run` is."""
    agents = _agents(stage, {"lead": [[Use("write_file", {"path": "a", "text": "b"})], Say("done")]})

    with record(by=PERSON, relay=stage.relay()):
        result = Runner.run_sync(agents["lead"], WORDS)

    assert "done" == result.final_output
    assert 1 == len(stage.recorded(ToolCompleted))


def test_the_programs_own_objects_come_back(stage: Stage) -> None:
    """The last agent is the program's own object; hooks of the program are told of it, and of every event as before."""
    agents = _agents(stage, {"lead": [[Transfer("editor")]], "editor": [Say("ok")]})
    seen: list[Any] = []

    class Hooks(RunHooks[Any]):
        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            seen.append((from_agent, to_agent))

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            seen.append(agent)

    with record(by=PERSON, relay=stage.relay()):
        result = asyncio.run(Runner.run(agents["lead"], WORDS, hooks=Hooks()))

    assert result.last_agent is agents["editor"]
    assert [agents["lead"], (agents["lead"], agents["editor"]), agents["editor"]] == seen


def test_a_tool_that_raises_has_failed(stage: Stage) -> None:
    """The model reads the SDK's text about the error; the receipt says that the call failed."""

    @function_tool
    def broken() -> str:
        """Break."""
        raise LookupError("no such row")

    def reads() -> str:
        model = ScriptedModel([[function_call("broken", {}, call_id="c")], [assistant_message("done")]])
        asyncio.run(Runner.run(Agent(name="lead", model=model, tools=[broken]), WORDS))
        return str(model.calls[1].input[-1]["output"])

    without = reads()
    with record(by=PERSON, relay=stage.relay()):
        recorded = reads()

    assert without == recorded
    assert [] == stage.recorded(ToolCompleted)
    (message,) = stage.words(ToolFailed, "message")
    assert "LookupError: no such row" in message


def test_a_tool_finds_its_run(stage: Stage) -> None:
    """Code in a tool finds the run of its agent, without anybody passing it."""
    found: list[str] = []

    @function_tool
    def look() -> str:
        """Look."""
        found.append(current_run().agent)
        return "seen"

    model = ScriptedModel([[function_call("look", {}, call_id="c")], [assistant_message("done")]])
    with record(by=PERSON, relay=stage.relay()):
        asyncio.run(Runner.run(Agent(name="Some Agent", model=model, tools=[look]), WORDS))

    assert ["Some-Agent"] == found


def test_tools_of_the_provider_are_said_to_be_uncovered(stage: Stage) -> None:
    """What runs at the provider cannot be judged: a warning, and a flag on the close-out."""
    agent = Agent(name="lead", model=ScriptedModel([[assistant_message("done")]]), tools=[WebSearchTool()])

    with record(by=PERSON, relay=stage.relay()), pytest.warns(UserWarning, match="neither judged nor recorded"):
        asyncio.run(Runner.run(agent, WORDS))

    assert ("uncovered.web_search",) == stage.recorded(RunClosed)[0].flags


def test_a_conversation_goes_on(stage: Stage) -> None:
    """With a session of the SDK, the second run sees the first one's words, as without us."""
    session = SQLiteSession("s", stage.directory / "session.db")
    model = ScriptedModel([[assistant_message("one")], [assistant_message("two")]])

    async def both() -> None:
        agent = Agent(name="lead", model=model)
        await Runner.run(agent, "first", session=session)
        await Runner.run(agent, "second", session=session)

    with record(by=PERSON, relay=stage.relay()):
        asyncio.run(both())

    assert "first" in json.dumps(model.calls[1].input)
    assert 2 == len(stage.recorded(RunStarted))


def _asks_first(stage: Stage) -> tuple[Agent[Any], Agent[Any]]:
    """Return a lead that passes the conversation to an agent whose only tool needs an approval of the SDK."""
    made: list[str] = stage.made

    @function_tool(needs_approval=True)
    def pay(to: str) -> str:
        """Pay."""
        made.append(f"pay {to}")
        return "paid"

    steps = [[function_call("pay", {"to": "bob"}, call_id="p1")], [assistant_message("paid bob")]]
    payer = Agent(name="payer", model=ScriptedModel(steps), tools=[pay])
    lead = Agent(
        name="lead",
        model=ScriptedModel([[function_call("transfer_to_payer", {}, call_id="t1")]]),
        handoffs=[payer],
    )
    return lead, payer


def test_a_run_that_waits_for_an_approval_of_the_sdk_goes_on(stage: Stage) -> None:
    """The run with the state is the same root and the same handoff, and nothing is closed before it ended."""
    lead, _ = _asks_first(stage)

    async def both() -> str:
        paused = await Runner.run(lead, WORDS)
        assert [] == stage.recorded(RunClosed) == stage.recorded(HandoffCompleted)
        state = paused.to_state()
        state.approve(paused.interruptions[0])
        return str((await Runner.run(lead, state)).final_output)

    with record(by=PERSON, relay=stage.relay()):
        assert "paid bob" == asyncio.run(both())

    assert ["pay bob"] == stage.made
    assert (1, 1, 1) == tuple(len(stage.recorded(kind)) for kind in (RunStarted, RunClosed, HandoffCompleted))
    assert 1 == len(stage.recorded(ToolCompleted))


def test_a_state_that_another_process_goes_on_with_is_the_same_run(stage: Stage) -> None:
    """The state is JSON meanwhile, and the recorder another one: the ledger knows whose it is."""
    lead, _ = _asks_first(stage)
    with record(by=PERSON, relay=stage.relay()):
        kept = asyncio.run(Runner.run(lead, WORDS)).to_state().to_string()
    again, payer = _asks_first(stage)
    payer.model = ScriptedModel([[assistant_message("paid bob")]])

    async def resume() -> str:
        state = await RunState.from_string(again, kept)
        state.approve(state.get_interruptions()[0])
        return str((await Runner.run(again, state)).final_output)

    with record(by=PERSON, relay=stage.relay()):
        assert "paid bob" == asyncio.run(resume())

    assert ["pay bob"] == stage.made
    assert (1, 1, 1) == tuple(len(stage.recorded(kind)) for kind in (RunStarted, RunClosed, HandoffCompleted))


def test_an_agent_in_a_tool_that_waits_for_an_approval_goes_on(stage: Stage) -> None:
    """The SDK asks the outer program; the handoff of the inner agent stays one."""
    _, payer = _asks_first(stage)
    steps = [[function_call("ask_payer", {"input": "Pay bob"}, call_id="a1")], [assistant_message("done")]]
    lead = Agent(name="lead", model=ScriptedModel(steps), tools=[payer.as_tool("ask_payer", "Ask")])

    async def both() -> str:
        paused = await Runner.run(lead, WORDS)
        state = paused.to_state()
        state.approve(paused.interruptions[0])
        return str((await Runner.run(lead, state)).final_output)

    with record(by=PERSON, relay=stage.relay()):
        assert "done" == asyncio.run(both())

    assert ["pay bob"] == stage.made
    assert ["Pay bob"] == stage.words(HandoffInitiated, "task")
    assert (1, 1, 1) == tuple(len(stage.recorded(kind)) for kind in (RunStarted, RunClosed, HandoffCompleted))


def test_nothing_is_recorded_afterwards(stage: Stage) -> None:
    """A recording that is closed leaves agents as they were."""
    agents = _agents(stage, {"lead": [[Transfer("editor")], [Transfer("editor")]], "editor": [Say("ok"), Say("ok")]})
    with record(by=PERSON, relay=stage.relay()):
        asyncio.run(Runner.run(agents["lead"], WORDS))

    assert "ok" == asyncio.run(Runner.run(agents["lead"], WORDS)).final_output
    assert 1 == len(stage.recorded(RunStarted))


class TestCanaries:
    """What the adapter leans on beside documented names. A release that changes one of these is noticed here."""

    def test_tools_say_that_they_are_agents(self) -> None:
        """An agent that is used as a tool is recorded as a handoff alone."""
        made = Agent(name="a", model=ScriptedModel([])).as_tool("ask", "Ask")

        assert made._is_agent_tool
        assert isinstance(made._agent_instance, Agent)

    def test_tools_have_a_failure_function(self) -> None:
        """Its error is heard there."""
        made = function_tool(lambda: "x", name_override="x")

        assert hasattr(made, "_failure_error_function")
        assert hasattr(made, "_use_default_failure_error_function")

    def test_handoffs_know_their_agent(self) -> None:
        """Agents are found through their transfers."""
        agent = Agent(name="a", model=ScriptedModel([]))

        assert handoff(agent)._agent_ref() is agent

    def test_streams_have_a_task(self) -> None:
        """Its end is the end of the run."""
        assert "run_loop_task" in {one.name for one in fields(RunResultStreaming)}
