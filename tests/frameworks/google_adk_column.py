"""Google ADK with scripted models of its own kind."""

import asyncio
import contextlib
import copy
import gc
import json
import warnings
import weakref
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

import pytest
from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.code_executors import UnsafeLocalCodeExecutor
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool, FunctionTool, google_search
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.workflow import Workflow
from google.genai.types import Content, FunctionCall, FunctionResponse, Part
from pydantic import BaseModel

from batonpass import current_run
from batonpass.adapters.frameworks.agent_seat import AgentSeat
from batonpass.adapters.google_adk import record
from batonpass.adapters.google_adk.adk_call import record_tool
from batonpass.adapters.google_adk.adk_invocation import AdkInvocation
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
    write,
)

APP = "office"


class ScriptedLlm(BaseLlm):
    """A model that follows a script, and keeps what it was given."""

    model: str = "scripted"
    name: str = ""
    steps: Any = None
    given: list[str] = []  # noqa: RUF012 - a field of pydantic, which copies it

    async def generate_content_async(
        self, llm_request: LlmRequest, *, stream: bool
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer with the next turn; streamed, word by word first."""
        contents = [one.model_dump(mode="json", exclude_none=True) for one in llm_request.contents]
        system = str(llm_request.config.system_instruction)
        tools = [one.model_dump(mode="json", exclude_none=True) for one in llm_request.config.tools or ()]
        request = {"system": system, "messages": contents, "tools": tools}
        self.given.append(json.dumps(request, ensure_ascii=False))
        turn = next(self.steps)
        if isinstance(turn, Die):
            raise ProviderGoneError("the provider does not answer")
        if isinstance(turn, Say):
            parts = [Part(text=turn.text)]
        else:
            place = f"{self.name}_{len(self.given)}"
            parts = [Part(function_call=_call(one, f"call_{place}_{number}")) for number, one in enumerate(turn)]
        if stream and isinstance(turn, Say):
            for letter in turn.text:
                yield LlmResponse(content=Content(role="model", parts=[Part(text=letter)]), partial=True)
        yield LlmResponse(content=Content(role="model", parts=parts))


def _call(asked: Use | Delegate | Transfer, call_id: str) -> FunctionCall:
    match asked:
        case Use(tool, arguments):
            return FunctionCall(name=tool, args=dict(arguments), id=call_id)
        case Delegate(to, task):
            return FunctionCall(name=to, args={"request": task}, id=call_id)
        case Transfer(to):
            return FunctionCall(name="transfer_to_agent", args={"agent_name": to}, id=call_id)


class GoogleAdk(Driver):
    """Delegations are agents used as tools; transfers are the framework's own."""

    name: ClassVar = "google-adk"
    form: ClassVar = "tool"

    def play(self, stage: Stage, script: Script, **options: Any) -> Told:
        """Let the lead work, recorded."""
        return self._told(stage, script, [record(**stage.recording(options))])

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        return self._told(stage, script, [])

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        tree = Tree(stage, script, self.form)
        recorded = record(**stage.recording(options))
        return tree.told(recorded.resume(tree.lead, which))

    def _told(self, stage: Stage, script: Script, plugins: list[BasePlugin]) -> Told:
        tree = Tree(stage, script, self.form)
        return tree.told(events_of(tree.lead, plugins))


class SingleTurn(GoogleAdk):
    """Delegations are sub-agents in the mode `single_turn`."""

    form: ClassVar = "single_turn"


class TaskMode(GoogleAdk):
    """Delegations are sub-agents in the mode `task`."""

    form: ClassVar = "task"


class Tree:
    """The agents of a scene. An agent has one parent, so whoever is asked by two agents is there twice."""

    def __init__(self, stage: Stage, script: Script, form: str) -> None:
        self._stage, self._script, self._form = stage, script, form
        self.models = {
            name: ScriptedLlm(name=name, steps=self._steps(name), given=[]) for name in ("lead", "editor", "checker")
        }
        self.lead = self._agent("lead")

    def _steps(self, name: str) -> Iterator[Any]:
        """Return the turns of an agent. One in the mode `task` answers by a tool."""
        turns = self._script.get(name, ())
        tasked = self._form == "task" and name != "lead" and not self._transferred(name)
        for number, turn in enumerate(turns, 1):
            if tasked and isinstance(turn, Say):
                yield [Use("finish_task", {"result": turn.text})]
                if number < len(turns):
                    continue
            yield turn  # after the last task: if it is not alone with a lead that waits for it, it is asked again

    def _transferred(self, name: str) -> bool:
        return any(isinstance(one, Transfer) and one.to == name for one in self._asked("lead"))

    def _asked(self, name: str) -> list[Any]:
        return [one for turn in self._script.get(name, ()) if isinstance(turn, Sequence) for one in turn]

    def _agent(self, name: str, mode: Any = None) -> LlmAgent:
        asked = self._asked(name)
        helpers = dict.fromkeys(one.to for one in asked if isinstance(one, Delegate))
        targets = dict.fromkeys(one.to for one in asked if isinstance(one, Transfer))
        tools: list[Any] = list(self._stage.tools().values())
        children: list[BaseAgent] = [self._agent(child) for child in targets]
        if name == "lead" and not helpers:
            helpers = dict.fromkeys(child for child in ("editor", "checker") if child not in targets)
        if self._form == "tool":
            tools += [AgentTool(self._agent(child)) for child in helpers]
        else:
            children += [self._agent(child, self._form) for child in helpers]
        return LlmAgent(
            name=name,
            model=self.models[name],
            description=name,
            instruction=self._stage.prompt_of(name),
            tools=tools,
            sub_agents=children,
            mode=mode,
        )

    def told(self, running: Any) -> Told:
        """Return what came of it."""
        answer, error = None, None
        try:
            events = asyncio.run(running)
            answer = answer_of(events)
        except Exception as raised:  # noqa: BLE001 - a scene may end by any
            error = raised
        return Told(answer, error, {name: model.given for name, model in self.models.items() if model.given})


async def events_of(agent: BaseAgent, plugins: list[BasePlugin], words: str = WORDS, **options: Any) -> list[Event]:
    """Let an agent work on words, and return all events."""
    runner = InMemoryRunner(app=App(name=APP, root_agent=agent, plugins=plugins))
    session = await runner.session_service.create_session(app_name=APP, user_id="ana")
    message = Content(role="user", parts=[Part(text=words)])
    going = runner.run_async(user_id="ana", session_id=session.id, new_message=message, **options)
    return [event async for event in going]


def answer_of(events: Sequence[Event]) -> str | None:
    """Return the last words in events, or what a task came to."""
    said: list[str] = []
    for event in events:
        if isinstance(event.output, dict):
            said.append(event.output["result"])
        if not event.partial and event.content is not None:
            said += [part.text for part in event.content.parts or () if part.text]
    return said[-1] if said else None


class TestAgentTool(FrameworkConformance, FaultConformance):
    """The suite, with agents that are used as tools."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return GoogleAdk()


class TestSingleTurn(FrameworkConformance, FaultConformance):
    """The suite, with sub-agents that answer once."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return SingleTurn()


class TestTaskMode(FrameworkConformance, FaultConformance):
    """The suite, with sub-agents that finish a task."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return TaskMode()


class AskedLlm(BaseLlm):
    """A model that asks for what a test says."""

    model: str = "asked"
    opened: Any = None
    number: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, *, stream: bool
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer with the next act."""
        last = [part.function_response for part in llm_request.contents[-1].parts or () if part.function_response]
        result = next(iter((last[-1].response or {}).values()), "") if last else None
        said = await asyncio.to_thread(self.opened.turn, None if result is None else str(result))
        self.number += 1
        if isinstance(said, str):
            part = Part(text=said)
        else:
            tool, arguments = said
            if tool.startswith("ask_"):
                tool, arguments = tool.removeprefix("ask_"), {"request": arguments["input"]}
            part = Part(function_call=FunctionCall(name=tool, args=dict(arguments), id=f"call_{self.number}"))
        yield LlmResponse(content=Content(role="model", parts=[part]))


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
            AgentTool(LlmAgent(name=name, model=ScriptedLlm(name=name, steps=iter([Say("done")] * 9), given=[])))
            for name in HELPERS
        ]
        name = "lead" if self.stage.handoff is None else "worker"
        tools = [*tools_on(self.stage).values(), *helpers]
        agent = LlmAgent(name=name, model=AskedLlm(opened=self), tools=tools)
        if self.stage.handoff is None:
            await events_of(agent, [recorded], "Do it")
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


def scripted(*turns: Any, name: str = "lead") -> ScriptedLlm:
    """Return a model with a script of its own."""
    return ScriptedLlm(name=name, steps=iter(turns), given=[])


FORMS = {"tool": GoogleAdk, "single_turn": SingleTurn, "task": TaskMode}
NO_EDITOR = (
    '[policy]\nenforce = true\n\n[[rules]]\nname = "no-editor"\non = "handoff"\nagent = "editor"\ngate = "deny"\n'
)


def test_a_refused_transfer_returns_to_its_source(stage: Stage) -> None:
    """The conversation stays where it is, and the model reads why."""
    stage.policy = NO_EDITOR
    script: Script = {"lead": [[Transfer("editor")], Say("I do it myself")], "editor": [Say("ok")]}

    told = GoogleAdk().play(stage, script)

    assert "I do it myself" == told.answer
    assert "editor" not in told.given
    assert "Denied, and not made" in told.given["lead"][1]
    assert "handoff.refused" == stage.recorded(HandoffFailed)[0].error


@pytest.mark.parametrize("form", FORMS)
def test_a_refused_delegation_is_told_to_the_model(stage: Stage, form: str) -> None:
    """In each form the child does not begin, and the model of its parent reads why and goes on."""
    stage.policy = NO_EDITOR
    script: Script = {"lead": [[Delegate("editor")], Say("I do it myself")], "editor": [Say("ok")]}

    told = FORMS[form]().play(stage, script)

    assert "I do it myself" == told.answer
    assert "editor" not in told.given
    assert "Denied, and not made" in told.given["lead"][1]


SCENES: Mapping[str, Script] = {
    "transfer": {"lead": [[Transfer("editor")]], "editor": [[write("a")], Say("ok")]},
    "delegation": {
        "lead": [[Delegate("editor"), Delegate("checker")], Say("done")],
        "editor": [[write("a"), write("b")], Say("ok")],
        "checker": [Say("checked")],
    },
    "failure": {"lead": [[Use("write_file", {"path": "a"})], Die()]},
}


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("streaming", [StreamingMode.NONE, StreamingMode.SSE])
def test_events_are_the_same(stage: Stage, form: str, scene: str, streaming: StreamingMode) -> None:
    """With and without us, streamed or not, the same events come in each branch, and the same error."""
    script = SCENES[scene]

    def play(plugins: list[BasePlugin]) -> tuple[list[Any], str | None]:
        seen: list[Any] = []
        error = None
        config = RunConfig(streaming_mode=streaming)
        try:
            asyncio.run(_collect(Tree(stage, script, form).lead, plugins, seen, run_config=config))
        except Exception as raised:  # noqa: BLE001 - the same with and without us
            error = repr(raised)
        return sorted((_event(one) for one in seen), key=lambda one: str(one.get("branch"))), error

    without = play([])
    recorded = play([record(by=PERSON, relay=stage.relay())])

    assert without == recorded
    assert len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed)) == 1


async def _collect(agent: BaseAgent, plugins: list[BasePlugin], seen: list[Event], **options: Any) -> None:
    runner = InMemoryRunner(app=App(name=APP, root_agent=agent, plugins=plugins))
    session = await runner.session_service.create_session(app_name=APP, user_id="ana")
    message = Content(role="user", parts=[Part(text=WORDS)])
    async for event in runner.run_async(user_id="ana", session_id=session.id, new_message=message, **options):
        seen += [event]  # also those before an error


def _event(event: Event) -> Any:
    told = event.model_dump(mode="json", exclude_none=True)
    for varying in ("id", "timestamp", "invocation_id"):
        told.pop(varying, None)
    return told


def test_a_call_is_judged_as_it_is_made(stage: Stage) -> None:
    """A callback of the program changes the arguments after all plugins: the changed ones are judged."""

    def elsewhere(args: dict[str, Any], **_: Any) -> None:
        args["path"] = "etc/passwd"

    model = scripted([Use("write_file", {"path": "src/a", "text": "x"})], Say("done"))
    agent = LlmAgent(name="lead", model=model, tools=[stage.tools()["write_file"]], before_tool_callback=elsewhere)
    recorded = record(by=PERSON, relay=stage.relay(), grants={"lead": ["write:src/**"]})

    asyncio.run(events_of(agent, [recorded]))

    assert [] == stage.made
    assert ["grant"] == [body.rule for body in stage.recorded(ToolDenied)]
    assert "Denied, and not made" in model.given[1]


def test_a_call_that_a_callback_answers_was_not_made(stage: Stage) -> None:
    """What the program answers in place of a tool is no call."""
    model = scripted([Use("write_file", {"path": "src/a", "text": "x"})], Say("done"))
    agent = LlmAgent(
        name="lead",
        model=model,
        tools=[stage.tools()["write_file"]],
        before_tool_callback=lambda **_: {"result": "from a cache"},
    )

    asyncio.run(events_of(agent, [record(by=PERSON, relay=stage.relay())]))

    assert "from a cache" in model.given[1]
    assert [] == stage.recorded(ToolRequested)


def test_a_call_that_waits_for_a_confirmation_is_judged_when_it_is_made(stage: Stage) -> None:
    """A tool that the framework has confirmed first is recorded once, after the confirmation."""
    confirmed = FunctionTool(stage.tools()["write_file"], require_confirmation=True)
    model = scripted([Use("write_file", {"path": "src/a", "text": "x"})], Say("done"))
    agent = LlmAgent(name="lead", model=model, tools=[confirmed])
    recorded = record(by=PERSON, relay=stage.relay())

    async def main() -> list[int]:
        runner = InMemoryRunner(app=App(name=APP, root_agent=agent, plugins=[recorded]))
        session = await runner.session_service.create_session(app_name=APP, user_id="ana")
        options: dict[str, Any] = {"user_id": "ana", "session_id": session.id}
        asked = [
            call
            async for event in runner.run_async(**options, new_message=Content(role="user", parts=[Part(text=WORDS)]))
            for call in event.get_function_calls()
            if call.name == "adk_request_confirmation"
        ]
        before = len(stage.recorded(ToolRequested))
        yes = FunctionResponse(id=asked[0].id, name=asked[0].name, response={"confirmed": True})
        async for _ in runner.run_async(
            **options, new_message=Content(role="user", parts=[Part(function_response=yes)])
        ):
            pass
        return [before, len(stage.recorded(ToolCompleted))]

    assert [0, 1] == asyncio.run(main())
    assert ["write src/a"] == stage.made


def test_calls_of_one_turn_are_made_in_order(stage: Stage) -> None:
    """Functions that do not wait run one after the other, as they do without us."""
    calls = [Use("write_file", {"path": f"src/{number}", "text": "x"}) for number in range(8)]
    agent = LlmAgent(name="lead", model=scripted(calls, Say("done")), tools=[stage.tools()["write_file"]])

    asyncio.run(events_of(agent, [record(by=PERSON, relay=stage.relay())]))

    assert [f"write src/{number}" for number in range(8)] == stage.made
    assert 8 == len(stage.recorded(ToolCompleted))


def test_other_plugins_are_told_the_same(stage: Stage) -> None:
    """A plugin after ours sees every callback that it sees without us."""

    def played(ours: list[BasePlugin]) -> list[str]:
        seen: list[str] = []

        class Listens(BasePlugin):
            async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
                seen.append(f"before {tool.name} {tool_args}")

            async def after_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any) -> None:
                seen.append(f"after {tool.name} {result}")

            async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
                seen.append(f"model {callback_context.agent_name}")

            async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
                seen.append(f"agent {agent.name}")

        tree = Tree(stage, SCENES["delegation"], "single_turn")
        asyncio.run(events_of(tree.lead, [*ours, Listens(name="listens")]))
        return sorted(seen)  # children work side by side

    assert played([]) == played([record(by=PERSON, relay=stage.relay())])


def test_a_tool_finds_its_run_and_a_failure_is_one(stage: Stage) -> None:
    """Code in a tool finds the run of its agent; if it raises, the call failed and the run raises as without us."""

    def broken() -> str:
        """Break."""
        raise LookupError(current_run().agent)

    agent = LlmAgent(name="lead", model=scripted([Use("broken", {})]), tools=[broken])

    with pytest.raises(LookupError, match="lead"):
        asyncio.run(events_of(agent, [record(by=PERSON, relay=stage.relay())]))

    assert 1 == len(stage.recorded(ToolFailed))
    assert "failed" == stage.recorded(RunClosed)[0].outcome


def test_what_we_cannot_see_is_said(stage: Stage) -> None:
    """Tools of the provider, code of the model and agents without our plugin: a warning each, and flags at the end."""
    inner = LlmAgent(name="inner", model=scripted(Say("ok"), name="inner"))
    model = scripted([Use("inner", {"request": "go"})], Say("done"))
    model.model = "gemini-3.5-flash"
    agent = LlmAgent(
        name="lead",
        model=model,
        tools=[google_search, AgentTool(inner, include_plugins=False)],
        code_executor=UnsafeLocalCodeExecutor(),
    )

    with pytest.warns(UserWarning, match="neither judged nor recorded"):
        asyncio.run(events_of(agent, [record(by=PERSON, relay=stage.relay())]))

    assert {"uncovered.google_search", "uncovered.code_executor", "uncovered.inner"} == set(
        stage.recorded(RunClosed)[0].flags
    )
    assert 1 == len(stage.recorded(ToolCompleted))  # the agent without our plugin is a call like any other


def test_the_user_of_a_session_is_the_principal(stage: Stage) -> None:
    """A program that names nobody works for the user whom the framework knows."""
    agent = LlmAgent(name="lead", model=scripted(Say("done")))

    asyncio.run(events_of(agent, [record(relay=stage.relay())]))

    assert ["user:ana"] == [body.principal for body in stage.recorded(RunStarted)]


def test_a_conversation_goes_on_where_it_was_passed(stage: Stage) -> None:
    """Each message of the user is a root run, of the agent to which the conversation was passed."""
    tree = Tree(stage, {"lead": [[Transfer("editor")]], "editor": [Say("one"), Say("two")]}, "tool")
    recorded = record(by=PERSON, relay=stage.relay())

    async def main() -> None:
        runner = InMemoryRunner(app=App(name=APP, root_agent=tree.lead, plugins=[recorded]))
        session = await runner.session_service.create_session(app_name=APP, user_id="ana")
        for words in ("first", "second"):
            message = Content(role="user", parts=[Part(text=words)])
            async for _ in runner.run_async(user_id="ana", session_id=session.id, new_message=message):
                pass

    asyncio.run(main())

    assert ["lead", "editor"] == [body.agent for body in stage.recorded(RunStarted)]
    assert 2 == len(stage.recorded(RunClosed))
    assert 1 == len(stage.recorded(HandoffCompleted))


def test_a_task_that_asks_its_user_is_one_handoff(stage: Stage) -> None:
    """The child asks the person, and goes on with the answer: its handoff ends when it has finished."""
    editor = LlmAgent(
        name="editor",
        mode="task",
        description="edits",
        model=scripted(Say("Which file?"), [Use("finish_task", {"result": "edited"})], name="editor"),
    )
    lead = LlmAgent(name="lead", model=scripted([Delegate("editor")], Say("done")), sub_agents=[editor])
    recorded = record(by=PERSON, relay=stage.relay())

    async def main() -> None:
        runner = InMemoryRunner(app=App(name=APP, root_agent=lead, plugins=[recorded]))
        session = await runner.session_service.create_session(app_name=APP, user_id="ana")
        for words in ("first", "src/invoice.py"):
            message = Content(role="user", parts=[Part(text=words)])
            async for _ in runner.run_async(user_id="ana", session_id=session.id, new_message=message):
                pass

    asyncio.run(main())

    assert (
        1 == len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed)) == len(stage.recorded(HandoffCompleted))
    )
    assert ["edited" in report for report in stage.words(HandoffCompleted, "report")] == [True]


def test_steps_of_workflow_agents_are_handoffs(stage: Stage) -> None:
    """A sequence, a loop and parallel steps: each step is handed the work, as often as it begins."""

    def step(name: str, *turns: Any) -> LlmAgent:
        return LlmAgent(name=name, model=scripted(*turns, name=name), tools=list(stage.tools().values()))

    write_it = [Use("write_file", {"path": "src/a", "text": "x"})]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice = LoopAgent(name="twice", sub_agents=[step("again", Say("1"), Say("2"))], max_iterations=2)
        beside = ParallelAgent(name="beside", sub_agents=[step("left", write_it, Say("l")), step("right", Say("r"))])
        root = SequentialAgent(name="root", sub_agents=[step("first", Say("f")), twice, beside])

    asyncio.run(events_of(root, [record(by=PERSON, relay=stage.relay())]))

    assert ["root"] == [body.agent for body in stage.recorded(RunStarted)]
    assert sorted(["first", "twice", "again", "again", "beside", "left", "right"]) == sorted(
        body.to for body in stage.recorded(HandoffInitiated)
    )
    assert 7 == len(stage.recorded(HandoffCompleted))
    assert 1 == len(stage.recorded(ToolCompleted))


def test_nodes_of_a_workflow_are_the_programs_own(stage: Stage) -> None:
    """Agents in a workflow are recorded; its functions and tools are made as without us."""
    made: list[str] = []

    def stamp(node_input: Any) -> str:
        made.append("stamped")
        return f"stamped {node_input}"

    def note(text: str = "a") -> str:
        """Note."""
        made.append("noted")
        return f"noted {text}"

    def play(plugins: list[BasePlugin]) -> list[Any]:
        editor = LlmAgent(name="editor", model=scripted(Say("ok"), name="editor"))
        flow = Workflow(name="flow", edges=[("START", stamp, editor, FunctionTool(note))])
        return [_event(one) for one in asyncio.run(events_of(flow, plugins))]

    without, recorded = play([]), play([record(by=PERSON, relay=stage.relay())])

    assert without == recorded
    assert ["stamped", "noted"] * 2 == made
    assert ["editor"] == [body.agent for body in stage.recorded(RunStarted)]


def test_a_task_of_the_program_that_lives_long_keeps_nothing(stage: Stage) -> None:
    """It may work on many messages: what is over is not watched any more."""
    recorded = record(by=PERSON, relay=stage.relay())
    seen: list[weakref.ref[AdkInvocation]] = []
    begin = AdkInvocation.watch

    def watch(invocation: AdkInvocation, abandoned: Any) -> None:
        seen.append(weakref.ref(invocation))
        begin(invocation, abandoned)

    async def main() -> list[Any]:
        for _ in range(2):
            await events_of(LlmAgent(name="lead", model=scripted(Say("done"))), [recorded])
        gc.collect()
        return [one() for one in seen]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdkInvocation, "watch", watch)
        assert [None, None] == asyncio.run(main())


def test_a_root_that_goes_on_asks_nobody_twice(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process dies after the child has finished: the lead goes on with its result, and the child works no more."""
    monkeypatch.setattr(AdkInvocation, "abort", lambda *_: None)  # as if the process were gone
    monkeypatch.setattr(AgentSeat, "abort", lambda *_: None)
    GoogleAdk().play(
        stage, {"lead": [[Delegate("editor")], Die()], "editor": [[Use("pay", {"to": "b", "amount": 1})], Say("ok")]}
    )

    stage.relays.pop().close()
    again = GoogleAdk().resume(stage, {"lead": [[Delegate("editor")], Say("done")], "editor": []}, "lead")

    assert ("done", ["pay b 1"]) == (again.answer, stage.made)
    assert "editor" not in again.given


@pytest.mark.parametrize("end", ["break", "cancel"])
def test_nothing_stays_open_of_a_run_that_nobody_waits_for(stage: Stage, end: str) -> None:
    """A stream that is left, and a task that is cancelled, end the runs of their agents."""
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return "late"

    editor = LlmAgent(name="editor", model=scripted([Use("wait", {})], name="editor"), tools=[wait])
    lead = LlmAgent(name="lead", model=scripted([Delegate("editor")]), tools=[AgentTool(editor)])
    recorded = record(by=PERSON, relay=stage.relay())

    async def work() -> None:
        runner = InMemoryRunner(app=App(name=APP, root_agent=lead, plugins=[recorded]))
        session = await runner.session_service.create_session(app_name=APP, user_id="ana")
        message = Content(role="user", parts=[Part(text=WORDS)])
        async with contextlib.aclosing(
            runner.run_async(user_id="ana", session_id=session.id, new_message=message)
        ) as events:
            async for _ in events:
                if end == "break":
                    break

    async def main() -> None:
        working = asyncio.create_task(work())
        if end == "cancel":
            await begun.wait()
            working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(main())

    assert len(stage.recorded(RunStarted)) == len(stage.recorded(RunClosed))
    assert len(stage.recorded(HandoffAccepted)) == len(stage.recorded(HandoffFailed, HandoffCompleted))


def test_a_runner_inside_of_a_tool_is_a_handoff(stage: Stage) -> None:
    """A program that starts a runner in a tool, with the same plugin, hands work on."""
    recorded = record(by=PERSON, relay=stage.relay())

    async def ask(words: str) -> str:
        """Ask."""
        inner = LlmAgent(name="inner", model=scripted(Say("yes"), name="inner"))
        return answer_of(await events_of(inner, [recorded], words)) or ""

    agent = LlmAgent(name="lead", model=scripted([Use("ask", {"words": "really?"})], Say("done")), tools=[ask])
    asyncio.run(events_of(agent, [recorded]))

    assert ["really?"] == stage.words(HandoffInitiated, "task")
    assert 1 == len(stage.recorded(RunStarted)) == len(stage.recorded(ToolCompleted))


def test_a_release_that_was_not_tried_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning, and it goes on."""
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.1rc1")

    with pytest.warns(UserWarning, match="google-adk 9.1rc1 was not tried") as warned:
        record(by=PERSON)

    assert 1 == len(warned)


class TestCanaries:
    """What the adapter leans on beside documented names. A release that changes one of these is noticed here."""

    def test_a_callback_and_its_tool_share_their_context(self) -> None:
        """Both are given the same object, in the same context of the task: there a call is planned."""
        seen: list[Any] = []
        found: ContextVar[Any] = ContextVar("found", default=None)

        class Plans(BasePlugin):
            async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
                found.set(tool_context)

        class Looks(FunctionTool):
            async def run_async(self, *, args: Any, tool_context: Any) -> str:
                seen.append((found.get(), tool_context))
                return "seen"

        def left() -> None:
            """Look."""

        def right() -> None:
            """Look."""

        tools = [Looks(left), Looks(right)]
        model = scripted([Use("left", {}), Use("right", {})], Say("done"))
        asyncio.run(events_of(LlmAgent(name="lead", model=model, tools=tools), [Plans(name="plans")]))

        assert 2 == len(seen)
        assert all(planned is given for planned, given in seen)

    def test_a_tool_can_have_a_run_of_its_own(self) -> None:
        """A copy of a tool that we stand before makes its own calls."""
        tool = FunctionTool(lambda: "x")
        record_tool(tool)
        record_tool(tool)

        made = copy.deepcopy(tool)

        assert tool.run_async.__self__ is tool
        assert made.run_async.__self__ is made
        assert "x" == asyncio.run(made.run_async(args={}, tool_context=None))

    def test_a_task_defers_its_answer(self) -> None:
        """So its tool is told from those in which an agent works."""
        child = LlmAgent(name="child", mode="task", model=scripted())
        parent = LlmAgent(name="parent", model=scripted(), sub_agents=[child])

        (tool,) = [one for one in parent.tools if getattr(one, "name", None) == "child"]
        assert tool._defers_response
        assert not AgentTool(child)._defers_response

    def test_tools_that_answer_keep_their_names(self) -> None:
        """They are no calls."""
        child = LlmAgent(name="child", mode="task", model=scripted())

        assert "finish_task" in {getattr(one, "name", None) for one in child.tools}
        assert "set_model_response" == SetModelResponseTool(BaseModel).name
