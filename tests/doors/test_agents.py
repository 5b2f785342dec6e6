"""The door of native agents: a model asks for tools, and a script stands in its place."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from queue import SimpleQueue
from typing import Any, ClassVar, Final

import pytest

from batonpass.agents import (
    AgentDefinition,
    AgentRegistry,
    AgentRunner,
    HandoffExecutor,
    RunnerConfig,
    ScriptedClient,
    ToolDefinition,
    ToolExecutor,
    ToolRegistry,
    create_handoff_tool,
)
from batonpass.aio import AsyncRelay
from batonpass.errors import BatonpassError, GrantRevokedError
from batonpass.model.base.lifecycle import State
from batonpass.testing.doors import (
    MADE,
    PERSON,
    Act,
    Delegate,
    Door,
    DoorConformance,
    Ending,
    HandoffConformance,
    Listener,
    Opened,
    Stage,
    Told,
    Verdict,
    heard,
)
from batonpass.testing.doors.stage import HELPERS
from tests.doors.test_python import PythonDoor
from tests.doors.tools import NAMES, arguments_of, tools_on

PATIENCE: Final = 60
EVERYTHING: Final = ("write:**", "read:**", "read:/**", "pay:**", "call:**")


class ModelGoneError(Exception):
    """The model's provider does not answer."""


class OpenedAgent(Opened):
    """A model that asks for what a test says; it works in a thread of its own."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._acts: SimpleQueue[Act | Delegate | str] = SimpleQueue()
        self._answers: SimpleQueue[Told] = SimpleQueue()
        self._waits = False  # the model has asked for something
        self._over = False  # the model is asked nothing more
        self._working: threading.Thread | None = None
        self._tools = ToolRegistry(tools_on(stage).values())
        self._relay = AsyncRelay(stage.relay())
        # The table is about what observing means everywhere. What holds for models alone has tests of its own.
        config = RunnerConfig(max_iterations=100, gates="report")
        executor = ToolExecutor(self._tools)
        self._runner = AgentRunner(ScriptedClient(self._script), executor, config, relay=self._relay)
        self._helpers = AgentRegistry()
        for name in HELPERS:
            helper = AgentRunner(ScriptedClient(lambda _: "done"), ToolExecutor(), config, relay=self._relay)
            self._helpers.register(name, helper, AgentDefinition(name=name, model="scripted"))
            self._tools.register_tool_definition(self._handing(name))
        self._may: tuple[str, ...] = ()

    def hand_off(self, task: Delegate) -> Told:
        """Let the model use the tool that hands a task to an agent; what that may, the tool says."""
        self._may = task.may
        return self._ask(task)

    def _handing(self, to: str) -> ToolDefinition:
        """Return the tool that hands to an agent; what that may is said when it is used."""

        async def hand_off(task: str, rationale: str | None = None) -> str:
            made = create_handoff_tool(to, "Ask for help", HandoffExecutor(self._helpers), may=self._may)
            told: str = await made.function(task=task, rationale=rationale)
            return told

        return ToolDefinition(name=f"handoff_to_{to}", function=hand_off, description="Ask for help", hands_off=True)

    def call(self, act: Act) -> Told:
        """Let the model ask for a call."""
        return self._ask(act)

    def _ask(self, act: Act | Delegate) -> Told:
        if self._working is None:
            self._waits = self._over = False
            self._working = threading.Thread(target=self._work, daemon=True)
            self._working.start()
        self._acts.put(act)
        told = self._answers.get(timeout=PATIENCE)
        if self._over:
            self._end()
        return told

    def again(self) -> None:
        """Let the model's provider fail."""
        self._acts.put("fail")
        self._end()
        self._stage.retry()

    def close(self) -> None:
        """Let the model answer."""
        if self._working is not None:
            self._acts.put("done")
            self._end()

    def _script(self, turn: Any) -> str | Mapping[str, Any]:  # noqa: ANN401 - a turn
        if self._waits:
            returned = turn.messages[-1].parts[-1]
            said = returned.content
            refused = returned.outcome == "failed" or said.startswith("Held") or "gave back nothing" in said
            self._answers.put(heard(said) if refused else MADE)
        self._waits = False
        act = self._acts.get()
        if act == "fail":
            raise ModelGoneError
        if isinstance(act, str):
            return act
        self._waits = True
        if isinstance(act, Delegate):
            said = {"task": act.task, "rationale": act.rationale}
            return {f"handoff_to_{act.to}": {name: value for name, value in said.items() if value is not None}}
        return {NAMES[type(act)]: arguments_of(act)}

    def _work(self) -> None:
        try:
            asyncio.run(self._main())
        except GrantRevokedError:
            told = Told(Verdict.DENIED)
        except BatonpassError as error:
            told = Told(Verdict.FAILED, str(error))
        except ModelGoneError:
            return
        else:
            told = self._ended() if self._waits else MADE
        self._over = True
        if self._waits:
            self._answers.put(told)

    def _ended(self) -> Told:
        """Return what became of an act after which the model is asked nothing more."""
        assert self._stage.handoff is not None
        result = self._stage.handoff.result()
        if result.state is State.HELD:
            return Told(Verdict.HELD)
        reason = result.reason or ""
        return Told(Verdict.DENIED) if "revoked" in reason else Told(Verdict.FAILED, reason)

    def _end(self) -> None:
        assert self._working is not None
        self._working.join()
        self._working = None

    def _main(self) -> Coroutine[Any, Any, Any]:
        return self._on_handoff() if self._stage.handoff is not None else self._as_root()

    async def _as_root(self) -> None:
        """Answer a person. What is said to be its own is enforced; its table alone is only tried out."""
        allowed = self._stage.allowed
        may = (allowed.may or EVERYTHING) if self._stage.enforced else ()
        delegable = (allowed.may_delegate if allowed.may else EVERYTHING) if self._stage.enforced else ()
        definition = AgentDefinition(name="lead", model="scripted", may=may, may_delegate=delegable)
        limits = allowed.limits if may else None
        await self._runner.run(definition, "Do it", by=PERSON, items=allowed.constraints, limits=limits)

    async def _on_handoff(self) -> None:
        assert self._stage.handoff is not None
        handoff = await self._relay.handoff(self._stage.handoff.id)
        await handoff.run(self._runner.working(AgentDefinition(name="worker", model="scripted")))


class AgentDoor(PythonDoor):
    """A model that answers a person. Once its grant is revoked it is asked nothing more."""

    listener = Listener.MODEL
    ended_by = frozenset({Ending.REVOKED})
    cannot: ClassVar = {
        "a grant has ended": "what a definition says has no end; a table's has, and is only tried out",
        "interruptions": "a model is not ended in the middle of a call: its process is, as a program's",
    }

    def open(self, stage: Stage) -> Opened:
        """Start an agent."""
        if self.on_handoff:
            stage.offer()
        return OpenedAgent(stage)


class AgentDoorOnHandoff(AgentDoor):
    """A model that works on what was handed off; a held call ends its attempt."""

    agent = "worker"
    on_handoff = True
    ended_by = frozenset({Ending.HELD, Ending.REVOKED})
    cannot: ClassVar = {"interruptions": AgentDoor.cannot["interruptions"]}


class TestAgents(DoorConformance):
    """The suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AgentDoor()


class TestAgentsHandOff(HandoffConformance):
    """The table of handoffs, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AgentDoorOnHandoff()


class TestAgentsOnHandoff(DoorConformance):
    """The suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AgentDoorOnHandoff()
