"""The door of MCP clients: a model has each call judged with a tool, and makes it with tools of its own."""

from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any, Final

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import types

from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import declared_of
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay
from batonpass.server.acts.call_acts import ELSEWHERE
from batonpass.server.control_plane import ControlPlane
from batonpass.server.mcp.run_handle import handle_of
from batonpass.signing.run_proof import make_proof
from batonpass.testing.doors import (
    MADE,
    PERSON,
    Act,
    Delegate,
    Door,
    DoorConformance,
    HandoffConformance,
    Interrupted,
    Listener,
    Opened,
    Stage,
    Told,
    Verdict,
    heard,
)
from tests.doors.test_python import PythonDoor
from tests.doors.tools import NAMES, arguments_of, tools_on
from tests.unit.server.mcp.talk import by_token, code_of, data_of, talking, text_of

PATIENCE: Final = 60.0  # seconds


class Conversation:
    """A client with a token, which stays connected: a new one for each call would list all tools again."""

    def __init__(self, plane: ControlPlane, token: str) -> None:
        self._open = ExitStack()
        self._portal = self._open.enter_context(start_blocking_portal())
        talk = self._portal.wrap_async_context_manager(talking(by_token(plane, token)))
        self._talk = self._open.enter_context(talk)

    def call(self, tool: str, arguments: dict[str, object]) -> types.CallToolResult:
        """Call a tool."""
        return self._portal.call(partial(self._bounded, tool, arguments))

    async def _bounded(self, tool: str, arguments: dict[str, object]) -> types.CallToolResult:
        with anyio.fail_after(PATIENCE):
            return await self._talk.call(tool, **arguments)

    def close(self) -> None:
        """Say goodbye."""
        self._open.close()


class McpAgent:
    """A model behind a client, which keeps the handle of one run."""

    def __init__(self, conversation: Conversation, handle: str) -> None:
        self.conversation = conversation
        self.handle = handle

    def call(self, tool: str, /, **arguments: Any) -> types.CallToolResult:  # noqa: ANN401 - any JSON
        """Call a tool for the run."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return self.conversation.call(tool, {"run": self.handle, **given})


class OpenedOverMcp(Opened):
    """A model that works over MCP."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tools = tools_on(stage)
        self._conversations = ExitStack()
        self._run: McpAgent | None = None
        self._lead: McpAgent | None = None

    def call(self, act: Act) -> Told:
        """Ask whether a call may be made, make it, and say how it ended."""
        agent = self._open()
        declared = declared_of(self._tools[NAMES[type(act)]])
        arguments = arguments_of(act)
        begun = agent.call(
            "begin_call",
            tool=declared.name,
            arguments=arguments,
            target=None if declared.target is None else declared.target(arguments),
            action=declared.action,
            reads=declared.reads,
            reversible=declared.reversible,
            external=declared.external,
        )
        if begun.is_error:
            told = _refused(begun)
            if told.verdict is Verdict.HELD and self._stage.handoff is not None:
                self._run = None  # the attempt waits for a person; the next one goes on from there
            return told
        said = data_of(begun)
        if not said["replayed"]:
            try:
                result = self._stage.do(act)
            except Interrupted:
                return Told(Verdict.HELD)
            ended = agent.call("finish_call", call=said["call"], result=result)
            assert not ended.is_error, text_of(ended)
        return MADE

    def hand_off(self, task: Delegate) -> Told:
        """Hand a task off; if it is held, taking it says so."""
        agent = self._open()
        made = agent.call("hand_off", to=task.to, task=task.task, may=task.may, rationale=task.rationale)
        if not made.is_error and data_of(made)["state"] == "held":
            made = agent.call("accept", handoff=data_of(made)["id"])
        return _refused(made) if made.is_error else MADE

    def interrupt(self, act: Act) -> None:
        """Let the client die between a call and its outcome."""
        self._stage.interrupts = True
        self.call(act)
        self._stage.interrupts = False

    def again(self) -> None:
        """Let the attempt fail."""
        self._open().call("close", outcome="failed", error={"code": "model.gone"})
        self._run = None

    def close(self) -> None:
        """Close the run, and all conversations."""
        with self._conversations:
            if self._run is not None:
                self._run.call("close")

    def _open(self) -> McpAgent:
        if self._run is None:
            self._run = self._start() if self._stage.handoff is None else self._take(self._stage.handoff)
        return self._run

    def _start(self) -> McpAgent:
        relay = self._stage.relay()
        # With a token every root is enforced; this one is as the row of the table says.
        live = relay.start("Do it", by=PERSON, mode=self._stage.mode, items=self._stage.allowed.constraints)
        return self._let_in(relay, live.id, live)

    def _take(self, handoff: LiveHandoff) -> McpAgent:
        lead = self._lead or self._let_in(self._stage.relay(), handoff.info().parent, None)
        self._lead = lead
        taken = lead.call("accept", handoff=handoff.id)
        assert not taken.is_error, text_of(taken)
        return McpAgent(lead.conversation, data_of(taken)["run"])

    def _let_in(self, relay: Relay, named: RunId, live: LiveRun | None) -> McpAgent:
        plane = ControlPlane.over(relay, clock=self._stage.clock)
        token = relay.admin.add_token(PERSON, "agent", by=PERSON, lasts=timedelta(days=30), may=["read:**"])
        if live is not None:
            plane.runs.add(live)
        conversation = Conversation(plane, token.text)
        self._conversations.callback(conversation.close)
        return McpAgent(conversation, handle_of(make_proof(plane.runs.signer_of(named), named, token.id)))


def _refused(result: types.CallToolResult) -> Told:
    said = text_of(result)
    return Told(Verdict.FAILED, said) if (code_of(result) or "").startswith("store.") else heard(said)


class McpServerDoor(PythonDoor):
    """A model behind an MCP client."""

    listener = Listener.MODEL
    always = (ELSEWHERE,)

    def open(self, stage: Stage) -> Opened:
        """Let a client in."""
        if self.on_handoff:
            stage.offer()
        return OpenedOverMcp(stage)


class McpServerDoorOnHandoff(McpServerDoor):
    """A model behind an MCP client that works on what was handed off."""

    agent = "worker"
    on_handoff = True


class TestMcpServer(DoorConformance):
    """The suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return McpServerDoor()


class TestMcpServerHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return McpServerDoor()


class TestMcpServerOnHandoff(DoorConformance):
    """The suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return McpServerDoorOnHandoff()


class TestMcpServerOnHandoffHandsOff(HandoffConformance):
    """The table of handoffs, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return McpServerDoorOnHandoff()
