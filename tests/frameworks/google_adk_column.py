"""Google ADK with scripted models of its own kind."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Any, ClassVar

import pytest
from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool
from google.genai.types import Content, FunctionCall, Part

from batonpass.adapters.google_adk import record
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
        return self._told(stage, script, [record(by=PERSON, relay=stage.relay(), **options)])

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        return self._told(stage, script, [])

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        tree = Tree(stage, script, self.form)
        recorded = record(by=PERSON, relay=stage.relay(), **options)
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
        for turn in self._script.get(name, ()):
            if isinstance(turn, Say) and self._form == "task" and name != "lead" and not self._transferred(name):
                yield [Use("finish_task", {"result": turn.text})]
                yield turn  # if it is not alone with a lead that waits for it
            else:
                yield turn

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
            instruction=f"You are {name}.",
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


class TestAgentTool(FrameworkConformance):
    """The suite, with agents that are used as tools."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return GoogleAdk()


class TestSingleTurn(FrameworkConformance):
    """The suite, with sub-agents that answer once."""

    @pytest.fixture
    def driver(self) -> Driver:
        """Return the driver."""
        return SingleTurn()


class TestTaskMode(FrameworkConformance):
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


class AdkDoor(PythonDoor):
    """An agent of the framework that works for a person."""

    listener = Listener.MODEL
    cannot: ClassVar = {
        "interruptions": "a model is not ended in the middle of a call: its process is, as a program's",
        "rationale": "an agent that is used as a tool is given a request, and no rationale",
        "may": "the program says what agents may, and not the model that asks them",
    }

    def open(self, stage: DoorStage) -> Opened:
        """Start an agent."""
        if self.on_handoff:
            stage.offer()
        return OpenedAgent(stage)


class AdkDoorOnHandoff(AdkDoor):
    """An agent of the framework that works on a handoff; a held call ends its attempt."""

    agent = "worker"
    on_handoff = True
    ended_by = frozenset({Ending.HELD})


class TestDoor(DoorConformance):
    """The door suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AdkDoor()


class TestDoorHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AdkDoor()


class TestDoorOnHandoff(DoorConformance):
    """The door suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AdkDoorOnHandoff()
