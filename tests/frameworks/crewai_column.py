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
from crewai.tools import tool as crew_tool

from batonpass.adapters.crewai import record
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
        with record(by=PERSON, relay=stage.relay(), **options):
            return _told(given, crew.kickoff)

    def play_unrecorded(self, stage: Stage, script: Script) -> Told:
        """Let the lead work without us."""
        crew, given = _crew(stage, script)
        return _told(given, crew.kickoff)

    def resume(self, stage: Stage, script: Script, which: str, **options: Any) -> Told:
        """Go on in what could be another process."""
        crew, given = _crew(stage, script)
        with record(by=PERSON, relay=stage.relay(), **options) as recording:
            return _told(given, lambda: recording.resume(crew, which))


def _crew(stage: Stage, script: Script) -> tuple[Crew, dict[str, list[str]]]:
    given: dict[str, list[str]] = {}
    agents: dict[str, Agent] = {}
    for name in ("checker", "editor", "lead"):
        tools: list[Any] = [crew_tool(one)(function) for one, function in stage.tools().items()]
        agents[name] = an_agent(name, _scripted(name, script, given), tools, allow_delegation=name == "lead")
    # CrewAI gives the tools of delegation only to the agents of tasks. Whoever wants them deeper adds them.
    agents["editor"].tools += agents["editor"].get_delegation_tools([agents["checker"]])
    return Crew(agents=list(agents.values()), tasks=[a_task(agents["lead"], WORDS)]), given


def an_agent(name: str, answer: Any, tools: list[Any] | None = None, *, native: bool = True, **options: Any) -> Agent:
    """Return an agent with a scripted model."""
    return Agent(
        role=name,
        goal="Do it",
        backstory=f"You are {name}.",
        llm=ScriptedLLM(answer, native=native),
        tools=tools or [],
        **{"verbose": False, **options},
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


class TestCrewAI(FrameworkConformance):
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


class CrewDoor(PythonDoor):
    """An agent of a crew that works for a person."""

    listener = Listener.MODEL
    cannot: ClassVar = {
        "interruptions": "a model is not ended in the middle of a call: its process is, as a program's",
        "rationale": "a coworker is given a task and its context, and no rationale",
        "may": "the program says what agents may, and not the model that asks them",
    }

    def open(self, stage: DoorStage) -> Opened:
        """Start an agent."""
        if self.on_handoff:
            stage.offer()
        return OpenedCrew(stage)


class CrewDoorOnHandoff(CrewDoor):
    """An agent of a crew that works on a handoff; a held call ends its attempt."""

    agent = "worker"
    on_handoff = True
    ended_by = frozenset({Ending.HELD})


class TestDoor(DoorConformance):
    """The door suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return CrewDoor()


class TestDoorHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return CrewDoor()


class TestDoorOnHandoff(DoorConformance):
    """The door suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return CrewDoorOnHandoff()
