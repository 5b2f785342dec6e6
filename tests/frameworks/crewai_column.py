"""CrewAI with scripted models, which call tools natively as providers do."""

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

# CrewAI keeps a database of its own, and tells its makers about runs, unless it is told not to before it is imported.
os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true",
    CREWAI_TRACING_ENABLED="false",
    OTEL_SDK_DISABLED="true",
    XDG_DATA_HOME=tempfile.mkdtemp(),
)

from crewai import Agent, BaseLLM, Crew, Task
from crewai.hooks import InterceptionPoint, clear_all_hooks, get_hooks, register_hook, unregister_hook
from crewai.tools import tool as crew_tool
from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool
from crewai.tools.base_tool import BaseTool, Tool
from crewai.tools.structured_tool import CrewStructuredTool

from batonpass import current_run
from batonpass.adapters.crewai import record
from batonpass.adapters.crewai.tool_use import NOT_MADE
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
    NARROW,
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


class ScriptedLLM(BaseLLM):
    """A model that says what a script says, and keeps what it was given."""

    def __init__(self, answer: Any, *, native: bool = True) -> None:
        super().__init__(model="scripted")
        self._answer = answer
        self._native = native

    def call(self, messages: Any, tools: Any = None, **_: Any) -> Any:
        """Answer."""
        return self._answer([dict(one) for one in messages], tools)

    async def acall(self, messages: Any, tools: Any = None, **_: Any) -> Any:
        """Answer."""
        return self.call(messages, tools)

    def supports_function_calling(self) -> bool:
        """Return whether tools are called natively, and not in text."""
        return self._native

    def supports_stop_words(self) -> bool:
        """Return whether it can be told where to stop."""
        return False


class CrewAI(Driver):
    """Delegations are calls of a tool; there are no transfers."""

    name: ClassVar = "crewai"
    cannot: ClassVar = {"accepted_only_when_it_starts": "it has no transfers that could be dropped"}

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        crew, given = _crew(stage, script)
        with record(**stage.recording(options)):
            return _told(given, crew.kickoff)

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        crew, given = _crew(stage, script)
        return _told(given, crew.kickoff)

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        crew, given = _crew(stage, script)
        with record(**stage.recording(options)) as recording:
            return _told(given, lambda: recording.resume(crew, which))


def _crew(stage: Stage, script: Script) -> tuple[Crew, dict[str, list[str]]]:
    given: dict[str, list[str]] = {}
    agents: dict[str, Agent] = {}
    for name in ("checker", "editor", "lead"):
        tools: list[Any] = [crew_tool(one)(function) for one, function in stage.tools().items()]
        agents[name] = an_agent(
            name,
            _scripted(name, script, given),
            tools,
            allow_delegation=name == "lead",
            backstory=stage.prompt_of(name),
        )
    # CrewAI gives the tools of delegation only to the agents of tasks. Whoever wants them deeper adds them.
    agents["editor"].tools += agents["editor"].get_delegation_tools([agents["checker"]])
    return Crew(agents=list(agents.values()), tasks=[a_task(agents["lead"], WORDS)]), given


def an_agent(name: str, answer: Any, tools: list[Any] | None = None, *, native: bool = True, **options: Any) -> Agent:
    """Return an agent with a scripted model."""
    return Agent(
        role=name,
        goal="Do it",
        llm=ScriptedLLM(answer, native=native),
        tools=tools or [],
        **{"verbose": False, "backstory": f"You are {name}.", **options},
    )


def a_task(agent: Agent, words: str, **options: Any) -> Task:
    """Return a task for an agent."""
    return Task(description=words, expected_output="A word.", agent=agent, **options)


def _scripted(name: str, script: Script, given: dict[str, list[str]]) -> Any:
    turns = iter(script.get(name, ()))
    dead = False

    def answer(messages: list[Any], _: Any) -> Any:
        nonlocal dead
        system = [one["content"] for one in messages if one["role"] == "system"]
        said = {"system": system, "messages": [one for one in messages if one["role"] != "system"]}
        given.setdefault(name, []).append(json.dumps(said, ensure_ascii=False))
        turn = Die() if dead else next(turns)
        if isinstance(turn, Die):
            dead = True
            raise ProviderGoneError("the provider does not answer")
        if isinstance(turn, Say):
            return turn.text
        place = len(given[name])
        return [_call(one, f"call_{name}_{place}_{number}") for number, one in enumerate(turn)]

    return answer


def _call(asked: Use | Delegate | Transfer, call_id: str) -> dict[str, Any]:
    match asked:
        case Use(tool, arguments):
            return a_call(tool, dict(arguments), call_id)
        case Delegate(to, task):
            arguments = {"task": task, "context": "as the person said", "coworker": to}
            return a_call("delegate_work_to_coworker", arguments, call_id)
        case Transfer():
            raise NotImplementedError


def a_call(name: str, arguments: Mapping[str, Any], call_id: str = "call_1") -> dict[str, Any]:
    """Return a call of a tool, as a provider gives it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _told(given: Mapping[str, list[str]], work: Any) -> Told:
    answer, error = None, None
    try:
        result = work()
        answer = str(getattr(result, "raw", result))
    except Exception as raised:  # noqa: BLE001 - a scene may end by any
        error = raised
    return Told(answer, error, given)


class TestCrewAI(FrameworkConformance, FaultConformance):
    """The suite."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return CrewAI()


class OpenedCrew(OpenedFramework):
    """An agent of a crew."""

    async def main(self) -> None:
        """Let the agent work for a person, or on a handoff."""
        await asyncio.to_thread(self._work_in_thread)

    def _work_in_thread(self) -> None:
        number = 0

        def answer(messages: list[Any], _: Any) -> Any:
            nonlocal number
            number += 1
            returned = [one["content"] for one in messages if one["role"] == "tool"]
            said = self.turn(returned[-1] if returned else None)
            if isinstance(said, str):
                return said
            tool, arguments = said
            if tool.startswith("ask_"):
                arguments = {"task": arguments["input"], "context": "", "coworker": tool.removeprefix("ask_")}
                tool = "delegate_work_to_coworker"
            return [a_call(tool, arguments, f"call_{number}")]

        name = "lead" if self.stage.handoff is None else "worker"
        tools = [crew_tool(one)(function) for one, function in tools_on(self.stage).items()]
        helpers = [an_agent(helper, lambda *_: "done") for helper in HELPERS]
        agent = an_agent(name, answer, tools, max_retry_limit=0, max_iter=200)
        agent.tools += agent.get_delegation_tools(helpers)
        crew = Crew(agents=[agent, *helpers], tasks=[a_task(agent, "Do it")], cache=False)
        with record(
            by=DOOR_PERSON,
            relay=self.stage.relay(),
            grants=self.grants() if self.stage.handoff is None else {},
            items=self.stage.allowed.constraints,
            mode=self.stage.mode,
        ) as recording:
            if self.stage.handoff is None:
                crew.kickoff()
            else:
                recording.resume(crew, self.stage.handoff.id)


class TestDoor(RootDoor):
    """The door suite, for a root."""

    opened: ClassVar = OpenedCrew


class TestDoorHandsOff(HandingDoor):
    """The table of handoffs, for a root."""

    opened: ClassVar = OpenedCrew


class TestDoorOnHandoff(AttemptDoor):
    """The door suite, for an attempt at a handoff."""

    opened: ClassVar = OpenedCrew


# What only this framework has.


DELEGATION: Script = {
    "lead": [[Delegate("editor")], Say("done")],
    "editor": [[Use("write_file", {"path": "src/a.txt", "text": "a"})], Say("ok")],
}


def says(*turns: Any) -> Any:
    """Return what a model answers, turn by turn; an error is raised."""
    following = iter(turns)

    def answer(*_: Any) -> Any:
        turn = next(following)
        if isinstance(turn, Exception):
            raise turn
        return turn

    return answer


def tool_of(stage: Stage, name: str) -> Any:
    """Return a tool of the stage, as CrewAI has them."""
    return crew_tool(name)(stage.tools()[name])


def test_the_context_of_a_task_is_a_handoff(stage: Stage) -> None:
    """Whoever gets the output of a task works for the agent of that task, told what it said; all runs end."""
    first, second = an_agent("researcher", says("7 percent")), an_agent("writer", says("Written"))
    third = an_agent("printer", says("Printed"))
    find, note = a_task(first, "Find the rate"), a_task(second, "Write it down")
    alone = a_task(third, "Print the header", context=[])
    crew = Crew(agents=[first, second, third], tasks=[find, note, alone])

    with record(by=PERSON, relay=stage.relay()):
        assert "Printed" == crew.kickoff().raw

    (offered,) = stage.recorded(HandoffInitiated)
    assert ("writer", ["Write it down"]) == (offered.to, stage.words(HandoffInitiated, "task"))
    (context,) = stage.relays[0].handoff("writer").baton().artifacts
    with stage.relays[0].store.view() as view:
        assert b"7 percent" in (view.get_content(context.body).body or b"")
    assert ["researcher", "printer"] == [body.agent for body in stage.recorded(RunStarted)]
    assert ["completed", "completed"] == [body.outcome for body in stage.recorded(RunClosed)]
    assert 1 == len(stage.recorded(HandoffAccepted)) == len(stage.recorded(HandoffCompleted))


def test_a_named_context_comes_from_its_task(stage: Stage) -> None:
    """A task that names its context is a handoff from the agent of the last task that it names."""
    agents = [an_agent(name, says(name)) for name in ("one", "two", "three")]
    one = a_task(agents[0], "First")
    two = a_task(agents[1], "Second", context=[])
    three = a_task(agents[2], "Third", context=[one])

    with record(by=PERSON, relay=stage.relay()):
        Crew(agents=agents, tasks=[one, two, three]).kickoff()

    runs = {body.run: body.agent for body in stage.recorded(RunStarted)}
    assert ["one"] == [runs[body.run] for body in stage.recorded(HandoffInitiated)]


def test_a_crew_that_fails_ends_all_its_runs(stage: Stage) -> None:
    """The error is the provider's; the agent that failed has failed, and the one before it has done its task."""
    first = an_agent("researcher", says("7 percent"))
    second = an_agent("writer", says(*[ProviderGoneError("gone")] * 3))
    crew = Crew(agents=[first, second], tasks=[a_task(first, "Find it"), a_task(second, "Write it down")])

    with record(by=PERSON, relay=stage.relay()), pytest.raises(ProviderGoneError):
        crew.kickoff()

    assert 1 == len(stage.recorded(HandoffFailed))
    assert ["completed"] == [body.outcome for body in stage.recorded(RunClosed)]


@pytest.mark.parametrize("way", ["kickoff_async", "akickoff", "stream"])
def test_every_way_to_kick_off_is_recorded(stage: Stage, way: str) -> None:
    """Asynchronous and streamed crews return and stream the same as without us, and are recorded."""

    def play() -> tuple[str, list[str]]:
        crew, _ = _crew(stage, DELEGATION)
        if way == "stream":
            crew.stream = True
            streamed = crew.kickoff()
            chunks = [one.content for one in streamed]
            return streamed.result.raw, chunks
        return asyncio.run(getattr(crew, way)()).raw, []

    without = play()
    with record(by=PERSON, relay=stage.relay()):
        assert without == play()

    assert (
        1 == len(stage.recorded(RunStarted)) == len(stage.recorded(HandoffCompleted)) == len(stage.recorded(RunClosed))
    )
    assert 1 == len(stage.recorded(ToolCompleted))


@pytest.mark.parametrize("way", ["kickoff", "kickoff_async"])
def test_an_agent_that_is_kicked_off_alone_is_recorded(stage: Stage, way: str) -> None:
    """Its words are the intent, and its tools are judged."""
    answer = says([a_call("write_file", {"path": "etc/a", "text": "a"})], "done")
    agent = an_agent("lead", answer, [tool_of(stage, "write_file")])

    with record(by=PERSON, relay=stage.relay(), grants=NARROW | {"lead": ["write:src/**"]}):
        result = getattr(agent, way)(WORDS)
        result = asyncio.run(result) if asyncio.iscoroutine(result) else result

    assert ("done", []) == (result.raw, stage.made)
    assert 1 == len(stage.recorded(ToolDenied)) == len(stage.recorded(RunClosed))


def test_a_crew_in_a_tool_is_a_handoff(stage: Stage) -> None:
    """Agents of a crew that is kicked off inside of a tool work for the agent whose tool it is."""

    @crew_tool("ask_crew")
    def ask_crew(words: str) -> str:
        """Ask a crew."""
        inner = an_agent("inner", says("found"))
        return Crew(agents=[inner], tasks=[a_task(inner, words)]).kickoff().raw

    lead = an_agent("lead", says([a_call("ask_crew", {"words": "Find it"})], "done"), [ask_crew])

    with record(by=PERSON, relay=stage.relay()):
        Crew(agents=[lead], tasks=[a_task(lead, WORDS)]).kickoff()

    assert ["Find it"] == stage.words(HandoffInitiated, "task")
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(ToolCompleted))


def test_calls_in_text_are_judged(stage: Stage) -> None:
    """A model without native calls writes them as text; its refusal comes as the observation."""
    given: list[str] = []
    turns = says(
        'Thought: x\nAction: write_file\nAction Input: {"path": "etc/a", "text": "a"}',
        'Thought: x\nAction: write_file\nAction Input: {"path": "src/a", "text": "a"}',
        "Thought: I now know the final answer\nFinal Answer: done",
    )

    def answer(messages: list[Any], tools: Any) -> Any:
        given.append(json.dumps(messages))
        return turns(messages, tools)

    agent = an_agent("lead", answer, [tool_of(stage, "write_file")], native=False)

    with record(by=PERSON, relay=stage.relay(), grants={"lead": ["write:src/**"]}):
        assert "done" == Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff().raw

    assert ["write src/a"] == stage.made
    assert "Denied, and not made" in given[1]
    assert 1 == len(stage.recorded(ToolDenied)) == len(stage.recorded(ToolCompleted))


def test_what_the_cache_answers_was_not_made(stage: Stage) -> None:
    """A call that CrewAI answers from its cache is judged, and recorded as not made."""
    page = [a_call("fetch_page", {"url": "https://example.org"})]
    agent = an_agent("lead", says(page, page, "done"), [tool_of(stage, "fetch_page")], cache=True)

    with record(by=PERSON, relay=stage.relay()):
        Crew(agents=[agent], tasks=[a_task(agent, WORDS)], cache=True).kickoff()

    assert ["fetch https://example.org"] == stage.made
    assert 1 == len(stage.recorded(ToolCompleted))
    assert [f"RuntimeError: {NOT_MADE}\n"] == stage.words(ToolFailed, "message")


@pytest.mark.parametrize("native", [True, False])
def test_each_time_that_a_tool_runs_is_a_call(stage: Stage, *, native: bool) -> None:
    """CrewAI makes a call in text again that failed. Code in a tool finds its run."""
    made: list[str] = []

    @crew_tool("broken")
    def broken(word: str) -> str:
        """Break."""
        made.append(f"{word} {current_run().agent}")
        raise LookupError(word)

    asked: Any = (
        [a_call("broken", {"word": "a"})] if native else 'Thought: x\nAction: broken\nAction Input: {"word": "a"}'
    )
    done = "done" if native else "Thought: I now know the final answer\nFinal Answer: done"
    agent = an_agent("lead", says(asked, done), [broken], native=native)

    with record(by=PERSON, relay=stage.relay()):
        assert "done" == Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff().raw

    assert {"a lead"} == set(made)
    assert len(made) == len(stage.recorded(ToolFailed)) == len(stage.recorded(ToolRequested))


def test_what_another_hook_changes_is_judged(stage: Stage) -> None:
    """A hook of the program that changes arguments after ours does not get around the grant."""

    def elsewhere(context: Any) -> None:
        context.tool_input["path"] = "etc/passwd"

    agent = an_agent(
        "lead", says([a_call("write_file", {"path": "src/a", "text": "a"})], "done"), [tool_of(stage, "write_file")]
    )
    with record(by=PERSON, relay=stage.relay(), grants={"lead": ["write:src/**"]}):
        register_hook(InterceptionPoint.PRE_TOOL_CALL, elsewhere)
        try:
            Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff()
        finally:
            unregister_hook(InterceptionPoint.PRE_TOOL_CALL, elsewhere)

    assert [] == stage.made
    assert ["grant"] == [body.rule for body in stage.recorded(ToolDenied)]


def test_what_another_hook_stops_was_not_made(stage: Stage) -> None:
    """A call that ours allows and a hook of the program stops is recorded as not made, and the model reads theirs."""

    def stop(_: Any) -> bool:
        return False

    agent = an_agent(
        "lead", says([a_call("write_file", {"path": "src/a", "text": "a"})], "done"), [tool_of(stage, "write_file")]
    )
    with record(by=PERSON, relay=stage.relay()):
        register_hook(InterceptionPoint.PRE_TOOL_CALL, stop)
        try:
            Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff()
        finally:
            unregister_hook(InterceptionPoint.PRE_TOOL_CALL, stop)

    assert [] == stage.made
    assert [f"RuntimeError: {NOT_MADE}\n"] == stage.words(ToolFailed, "message")


def test_hooks_that_a_program_clears_are_back(stage: Stage) -> None:
    """Clearing all hooks does not take the guard away, nor does an agent that worked before it was recorded."""
    turns = says("warm", [a_call("write_file", {"path": "etc/a", "text": "a"})], "done")
    agent = an_agent("lead", turns, [tool_of(stage, "write_file")])
    Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff()

    with record(by=PERSON, relay=stage.relay(), grants={"lead": ["write:src/**"]}):
        clear_all_hooks()
        assert "done" == Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff().raw

    assert [] == stage.made
    assert 1 == len(stage.recorded(ToolDenied))


def test_closing_gives_everything_back(stage: Stage) -> None:
    """Closed, CrewAI has its methods and hooks as before; a second recording takes the place of the first."""
    methods = [Agent.execute_task, Agent.aexecute_task, Agent.kickoff, BaseTool.run, CrewStructuredTool.invoke]
    hooks = [get_hooks(point) for point in InterceptionPoint]

    first = record(by=PERSON, relay=stage.relay())
    with record(by=PERSON, relay=stage.relay()):
        first.close()
        crew, _ = _crew(stage, {"lead": [Say("done")]})
        crew.kickoff()

    assert methods == [Agent.execute_task, Agent.aexecute_task, Agent.kickoff, BaseTool.run, CrewStructuredTool.invoke]
    assert hooks == [get_hooks(point) for point in InterceptionPoint]
    assert 1 == len(stage.recorded(RunStarted))


def test_a_release_that_was_not_tried_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning, and it goes on."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.1rc1")

    with pytest.warns(UserWarning, match=r"crewai 9\.1rc1 was not tried") as warned, record(by=PERSON):
        pass

    assert 1 == len(warned)


class TestCanaries:
    """What the adapter leans on beside documented names. A release that changes one of these is noticed here."""

    def test_hooks_before_and_after_share_the_arguments(self) -> None:
        """The hook after a call is given the same dictionary as the hook before: so each call finds its own."""
        seen: list[Any] = []

        def look(context: Any) -> None:
            seen.append(context.tool_input)

        @crew_tool("nothing")
        def nothing(word: str) -> str:
            """Do nothing."""
            return word

        agent = an_agent("lead", says([a_call("nothing", {"word": "a"})], "done"), [nothing])
        points = (InterceptionPoint.PRE_TOOL_CALL, InterceptionPoint.POST_TOOL_CALL)
        for point in points:
            register_hook(point, look)
        Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff()
        for point in points:
            unregister_hook(point, look)

        assert 2 == len(seen)
        assert seen[0] is seen[1]

    def test_structured_tools_know_their_tool(self) -> None:
        """What a tool declares, and whether it delegates, is read from the tool that the program made."""
        made = crew_tool("nothing")(do_nothing)

        assert made.to_structured_tool()._original_tool is made
        assert made.func is do_nothing

    def test_delegations_are_of_one_class(self) -> None:
        """A delegation is a handoff alone, and not also a call."""
        agent = an_agent("lead", says())

        assert all(isinstance(one, BaseAgentTool) for one in agent.get_delegation_tools([agent]))

    def test_an_executor_has_its_own_hooks_and_tools(self) -> None:
        """An agent that worked before it was recorded gets our hook there; a checkpoint says which tools it had."""
        agent = an_agent("lead", says("done"))
        Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff()

        assert isinstance(agent.agent_executor.before_llm_call_hooks, list)
        assert isinstance(agent.agent_executor.original_tools, list)

    def test_methods_are_where_we_replace_them(self) -> None:
        """A method that moved to another class is no longer wrapped there."""
        assert {"execute_task", "aexecute_task", "kickoff", "kickoff_async"} <= set(vars(Agent))
        assert {"invoke", "ainvoke"} <= set(vars(CrewStructuredTool))
        assert "run" in vars(BaseTool)
        assert "run" in vars(Tool)

    def test_hooks_fail_open(self) -> None:
        """CrewAI goes on after an error of a hook. If it did not, ours would not have to catch everything."""
        made: list[str] = []

        def fail(_: Any) -> None:
            raise ZeroDivisionError

        @crew_tool("nothing")
        def nothing(word: str) -> str:
            """Do nothing."""
            made.append(word)
            return word

        agent = an_agent("lead", says([a_call("nothing", {"word": "a"})], "done"), [nothing])
        register_hook(InterceptionPoint.PRE_TOOL_CALL, fail)
        Crew(agents=[agent], tasks=[a_task(agent, WORDS)]).kickoff()
        unregister_hook(InterceptionPoint.PRE_TOOL_CALL, fail)

        assert ["a"] == made


def do_nothing(word: str) -> str:
    """Do nothing."""
    return word
