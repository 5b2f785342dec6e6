"""Strands Agents with scripted models of its own kind."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from strands import Agent, ToolContext
from strands import tool as strands_tool
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeToolCallEvent
from strands.models.model import Model
from strands.multiagent import GraphBuilder, Swarm

from batonpass.adapters.strands import record
from batonpass.adapters.strands.strands_call import agent_of
from batonpass.adapters.strands.strands_stages import ExecuteToolStage, stand_in
from batonpass.handoff.live.current_run import find_current
from batonpass.model.bodies.body import (
    HandoffAccepted,
    HandoffCompleted,
    HandoffFailed,
    HandoffInitiated,
    RunClosed,
    RunStarted,
    ToolCompleted,
    ToolDenied,
    ToolFailed,
    ToolRequested,
)
from batonpass.testing.doors import PERSON as DOOR_PERSON
from batonpass.testing.doors.stage import HELPERS
from tests.doors.tools import tools_on
from tests.frameworks.asked_model import OpenedFramework
from tests.frameworks.faults import FaultConformance
from tests.frameworks.framework_door import AttemptDoor, HandingDoor, RootDoor
from tests.frameworks.suite import (
    ENOUGH,
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
    write,
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
        return self._told(stage, script, record(**stage.recording(options)))

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        return self._told(stage, script, None)

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        agents, models = agents_of(stage, script, None)
        recorded = record(**stage.recording(options))
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
            system_prompt=stage.prompt_of(name),
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


class TestStrands(FrameworkConformance, FaultConformance):
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


def an_agent(*turns: Any, name: str = "lead", **options: Any) -> Agent:
    """Return an agent with a script of its own."""
    return Agent(name=name, model=ScriptedModel(name, turns), callback_handler=None, retry_strategy=None, **options)


def tools_of(stage: Stage) -> list[Any]:
    """Return the tools of a scene as the framework has them."""
    return [strands_tool(one) for one in stage.tools().values()]


def given_to(agent: Agent) -> list[str]:
    """Return what the model of an agent was given."""
    model = agent.model
    assert isinstance(model, ScriptedModel)
    return model.given


NO_EDITOR = (
    '[policy]\nenforce = true\n\n[[rules]]\nname = "no-editor"\non = "handoff"\nagent = "editor"\ngate = "deny"\n'
)
SCENES: Mapping[str, Script] = {
    "transfer": {"lead": [[Transfer("editor")]], "editor": [[write("a")], Say("ok")]},
    "delegation": {
        "lead": [[Delegate("editor")], [Delegate("checker")], Say("done")],
        "editor": [[write("a")], [write("b")], Say("ok")],
        "checker": [Say("checked")],
    },
    "failure": {"lead": [[Use("write_file", {"path": "a"})], Die()]},
}


VARYING = frozenset(
    {"agent", "event_loop_cycle_id", "event_loop_parent_cycle_id", "metrics", "metadata", "model", "tracking_id"}
)


@pytest.mark.parametrize("asked", [Transfer("editor"), Delegate("editor")], ids=["transfer", "delegation"])
def test_a_refused_handoff_is_told_to_the_model(stage: Stage, asked: Any) -> None:
    """The child does not begin, and the model that asked for it reads why and goes on."""
    stage.policy = NO_EDITOR
    script: Script = {"lead": [[asked], Say("I do it myself")], "editor": [Say("ok")]}

    told = StrandsAgents().play(stage, script)

    assert "editor" not in told.given
    assert "Denied, and not made" in told.given["lead"][1]
    assert "handoff.refused" == stage.recorded(HandoffFailed)[0].error


@pytest.mark.parametrize("scene", SCENES)
def test_streamed_events_are_the_same(stage: Stage, scene: str) -> None:
    """With and without us, the same events come in the same order, and the same error."""
    script = SCENES[scene]

    async def collect(recorded: Any, seen: list[Any]) -> None:
        plugins = [] if recorded is None else [recorded]
        agents, _ = agents_of(stage, script, None if scene == "transfer" else recorded)
        working: Any = agents["lead"]
        if scene == "transfer":
            working = Swarm([agents["lead"], agents["editor"]], entry_point=agents["lead"], plugins=plugins)
        async for event in working.stream_async(WORDS):
            seen += [_event(event)]  # also those before an error

    def play(recorded: Any) -> tuple[list[Any], str | None]:
        seen: list[Any] = []
        try:
            asyncio.run(collect(recorded, seen))
        except Exception as raised:  # noqa: BLE001 - the same with and without us
            return seen, repr(raised)
        return seen, None

    assert play(None) == play(record(by=PERSON, relay=stage.relay()))
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


def _event(event: Any) -> Any:
    """Return what is the same in two plays of one event: all but objects, ids and times."""
    if isinstance(event, Mapping):
        return {key: _event(value) for key, value in event.items() if key not in VARYING}
    if isinstance(event, str | int | bool | None):
        return event
    return [_event(one) for one in event] if isinstance(event, list | tuple) else type(event).__name__


@pytest.mark.parametrize("place", ["hook", "middleware"])
def test_a_call_is_judged_as_it_is_made(stage: Stage, place: str) -> None:
    """The program changes the arguments after the model: the changed ones are judged."""
    if place == "middleware" and not hasattr(Agent, "add_middleware"):
        pytest.skip("below 1.62, programs add no middleware")
    agent = an_agent(
        [write("src/a")],
        Say("done"),
        tools=tools_of(stage),
        plugins=[record(by=PERSON, relay=stage.relay(), grants={"lead": ["write:src/**"]})],
    )
    elsewhere = {"path": "etc/passwd", "text": "x"}

    def change(event: BeforeToolCallEvent) -> None:
        event.tool_use["input"] = elsewhere

    async def swap(context: Any, make_it: Any) -> AsyncIterator[Any]:
        async for event in make_it(context.replace(tool_use={**context.tool_use, "input": elsewhere})):
            yield event

    if place == "hook":
        agent.add_hook(change, BeforeToolCallEvent)
    else:
        agent.add_middleware(ExecuteToolStage, swap)
    agent(WORDS)

    assert [] == stage.made
    assert ["grant"] == [body.rule for body in stage.recorded(ToolDenied)]
    assert "Denied, and not made" in given_to(agent)[1]


def test_a_call_that_a_hook_cancels_was_not_made(stage: Stage) -> None:
    """What the program answers in place of a tool is no call."""
    agent = an_agent([write()], Say("done"), tools=tools_of(stage), plugins=[record(by=PERSON, relay=stage.relay())])

    def cancel(event: BeforeToolCallEvent) -> None:
        event.cancel_tool = "not today"

    agent.add_hook(cancel, BeforeToolCallEvent)
    agent(WORDS)

    assert "not today" in given_to(agent)[1]
    assert [] == stage.recorded(ToolRequested)


def test_a_tool_finds_its_run_and_a_failure_is_one(stage: Stage) -> None:
    """Code in a tool finds the run of its agent; if it raises, the call failed and the model reads the same text."""

    @strands_tool
    def broken() -> str:
        """Break."""
        raise LookupError(getattr(find_current(), "agent", "nobody"))

    def reads(*plugins: Any) -> str:
        agent = an_agent([Use("broken", {})], Say("done"), tools=[broken], plugins=list(plugins))
        agent(WORDS)
        return given_to(agent)[1]

    without, recorded = reads(), reads(record(by=PERSON, relay=stage.relay()))

    assert without.replace("nobody", "lead") == recorded
    assert [] == stage.recorded(ToolCompleted)
    (message,) = stage.words(ToolFailed, "message")
    assert "lead" in message


def test_a_conversation_goes_on(stage: Stage) -> None:
    """Each prompt is a root run; the model sees the words before, as without us."""
    agent = an_agent(Say("one"), Say("two"), plugins=[record(by=PERSON, relay=stage.relay())])

    agent("first")
    agent("second")

    assert "first" in given_to(agent)[1]
    assert 2 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))


def test_an_agent_that_a_tool_calls_is_a_handoff(stage: Stage) -> None:
    """The tool is a call, and the agent in it, which has the same plugin, is handed its work."""
    recorded = record(by=PERSON, relay=stage.relay())
    inner = an_agent(Say("yes"), name="inner", plugins=[recorded])

    @strands_tool
    def ask(words: str) -> str:
        """Ask."""
        return str(inner(words))

    an_agent([Use("ask", {"words": "really?"})], Say("done"), tools=[ask], plugins=[recorded])(WORDS)

    assert ["really?"] == stage.words(HandoffInitiated, "task")
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(ToolCompleted))
    assert 1 == len(stage.recorded(HandoffCompleted))


def test_a_swarm_passes_its_work_on(stage: Stage) -> None:
    """Each agent hands to the next, its message is the task, and the last one has the result."""
    script: Script = {"lead": [[Transfer("editor")]], "editor": [[Transfer("checker")]], "checker": [Say("checked")]}

    StrandsAgents().play(stage, script)

    assert ["lead"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["editor", "checker"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert [TASK, TASK] == stage.words(HandoffInitiated, "task")
    assert ["checked" in report for report in stage.words(HandoffCompleted, "report")] == [True, True]
    assert 1 == len(stage.recorded(RunClosed))


def test_nodes_of_a_graph_are_handed_their_work(stage: Stage) -> None:
    """A graph is a run of its own, and so is a swarm inside of it."""
    recorded = record(by=PERSON, relay=stage.relay())
    builder = GraphBuilder()
    builder.add_node(an_agent([write("src/a")], Say("one"), name="first", tools=tools_of(stage)), "first")
    swarm = Swarm([an_agent(Say("two"), name="second")])
    builder.add_node(swarm, "swarm")
    builder.add_edge("first", "swarm")
    builder.set_entry_point("first")
    builder.set_graph_id("pipeline")
    builder.set_plugins([recorded])

    builder.build()(WORDS)

    assert ["pipeline"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["first", "second"] == [body.to for body in stage.recorded(HandoffInitiated)]
    assert 2 == len(stage.recorded(HandoffCompleted))
    assert 1 == len(stage.recorded(ToolCompleted)) == len(stage.recorded(RunClosed))


@pytest.mark.parametrize("where", ["root", "child"])
def test_an_interrupt_of_the_framework_is_one_run(stage: Stage, where: str) -> None:
    """A tool asks a person in the framework's own way; with the answer, the same run goes on."""

    @strands_tool(context=True)
    def confirm(tool_context: ToolContext) -> str:
        """Confirm."""
        return str(tool_context.interrupt("sure", reason="really?"))

    recorded = record(by=PERSON, relay=stage.relay())
    asks = [[Use("confirm", {})], Say("done")]
    if where == "root":
        agent = an_agent(*asks, tools=[confirm], plugins=[recorded])
    else:
        child = an_agent(*asks, name="editor", tools=[confirm])
        asking = child.as_tool(name="ask_editor", description="Ask")
        agent = an_agent([Delegate("editor")], Say("done"), tools=[asking], plugins=[recorded])

    paused = agent(WORDS)
    answers = [{"interruptResponse": {"interruptId": one.id, "response": "yes"}} for one in paused.interrupts or ()]
    result = agent(answers)

    assert "interrupt" == paused.stop_reason
    assert "done" == str(result).strip()
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed)) == len(stage.recorded(ToolCompleted))
    assert (
        (0 if where == "root" else 1) == len(stage.recorded(HandoffInitiated)) == len(stage.recorded(HandoffCompleted))
    )


def test_nothing_stays_open_of_a_run_that_is_cancelled(stage: Stage) -> None:
    """A task that is cancelled ends the runs of its agents."""
    begun = asyncio.Event()

    @strands_tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return "late"

    editor = an_agent([Use("wait", {})], name="editor", tools=[wait])
    asking = editor.as_tool(name="ask_editor", description="Ask")
    lead = an_agent([Delegate("editor")], tools=[asking], plugins=[record(by=PERSON, relay=stage.relay())])

    async def main() -> None:
        working = asyncio.create_task(lead.invoke_async(WORDS))
        await begun.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(main())

    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))
    assert 1 == len(stage.recorded(HandoffAccepted)) == len(stage.recorded(HandoffFailed))


def test_what_we_cannot_see_is_said(stage: Stage) -> None:
    """A call that nobody can place is counted, and not made where a program enforces."""
    free = an_agent(tools=tools_of(stage), plugins=[record(by=PERSON, relay=stage.relay())])
    held = an_agent(tools=tools_of(stage), plugins=[record(by=PERSON, relay=stage.relay(), grants={"lead": ENOUGH})])
    for agent in (free, held):
        agent.model = ScriptedModel("lead", [Say("done")])
        agent(WORDS)

    made = free.tool.write_file(path="src/a", text="x")
    refused = held.tool.write_file(path="src/b", text="x")

    assert ("success", "error") == (made["status"], refused["status"])
    assert ["write src/a"] == stage.made


def test_a_release_that_was_not_tried_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning, and it goes on."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.1rc1")

    with pytest.warns(UserWarning, match="strands-agents 9.1rc1 was not tried") as warned:
        record(by=PERSON)

    assert 1 == len(warned)


class TestCanaries:
    """What the adapter leans on beside documented names. A release that changes one of these is noticed here."""

    def test_an_agent_in_a_tool_is_found(self) -> None:
        """Its tool says that it is one, and has it."""
        agent = an_agent(name="child")

        assert agent is agent_of(agent.as_tool())

    def test_a_decorated_function_is_found(self) -> None:
        """It may be declared as a tool of ours."""

        def look() -> str:
            """Look."""
            return "seen"

        assert look is strands_tool(look).__wrapped__

    def test_a_swarm_has_a_tool_for_handoffs(self) -> None:
        """It has this name, and these arguments."""
        swarm = Swarm([an_agent(name="a"), an_agent(name="b")])
        (node, *_) = swarm.nodes.values()

        spec = node.executor.tool_registry.registry["handoff_to_agent"].tool_spec
        assert {"agent_name", "message", "context"} == set(spec["inputSchema"]["json"]["properties"])

    def test_what_is_added_last_is_innermost(self) -> None:
        """So a call is judged with the arguments that its tool gets; and all are given the state of one invocation."""
        seen: list[Any] = []

        def layer(name: str) -> Any:
            async def through(context: Any, make_it: Any) -> AsyncIterator[Any]:
                seen.append((name, id(context.invocation_state)))
                async for event in make_it(context):
                    yield event

            return through

        @strands_tool
        def look() -> str:
            """Look."""
            return "seen"

        agent = an_agent([Use("look", {})], Say("done"), tools=[look])
        agent.add_hook(lambda event: seen.append(("begin", id(event.invocation_state))), BeforeInvocationEvent)
        stand_in(agent, requests=layer("outer"), calls=layer("outer"))
        stand_in(agent, requests=layer("inner"), calls=layer("inner"))
        agent(WORDS)

        assert ["begin", *["outer", "inner"] * 3] == [name for name, _ in seen]
        assert 1 == len({state for _, state in seen})

    def test_an_agent_ends_with_its_error(self) -> None:
        """It is being raised when the end of an invocation is told."""
        seen: list[Any] = []
        agent = an_agent(Die())
        agent.add_hook(lambda _: seen.append(sys.exc_info()[1]), AfterInvocationEvent)

        with pytest.raises(Exception, match="the provider does not answer"):
            agent(WORDS)

        assert "the provider does not answer" == str(seen[0])
