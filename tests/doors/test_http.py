"""The door of programs on other machines: each call is judged over HTTP, and made where the program is."""

import json
from datetime import timedelta
from typing import Any

import pytest

from batonpass.handoff.live.faces import LiveHandoff, LiveRun
from batonpass.handoff.tools.declaration import declared_of
from batonpass.model.base.ids import RunId
from batonpass.relay import Relay
from batonpass.server.acts.call_acts import ELSEWHERE
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
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
from tests.unit.server.visitor import Answered, Visitor


class OpenedOverHttp(Opened):
    """A program with a token, and the proof of its run."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tools = tools_on(stage)
        self._run: tuple[Visitor, str] | None = None
        self._lead: Visitor | None = None

    def call(self, act: Act) -> Told:
        """Ask whether a call may be made, make it, and say how it ended."""
        agent, run = self._open()
        declared = declared_of(self._tools[NAMES[type(act)]])
        arguments = arguments_of(act)
        said = {
            "tool": declared.name,
            "arguments": arguments,
            "target": None if declared.target is None else declared.target(arguments),
            "action": declared.action,
            "reads": declared.reads,
            "reversible": declared.reversible,
            "external": declared.external,
        }
        begun = agent.post(f"/v1/runs/{run}/calls", said)
        if begun.status >= 400:
            told = _refused(begun)
            if told.verdict is Verdict.HELD and self._stage.handoff is not None:
                self._run = None  # the attempt waits for a person; the next one goes on from there
            return told
        if not begun.json["replayed"]:
            try:
                outcome: dict[str, Any] = {"result": self._stage.do(act)}
            except Interrupted:
                return Told(Verdict.HELD)
            ended = agent.post(f"/v1/runs/{run}/calls/{begun.json['call']}/outcome", outcome)
            assert ended.status < 400, ended.body
        return MADE

    def hand_off(self, task: Delegate) -> Told:
        """Hand a task off; if it is held, taking it says so."""
        agent, run = self._open()
        said = {"to": task.to, "task": task.task, "may": task.may, "rationale": task.rationale}
        made = agent.post(f"/v1/runs/{run}/handoffs", said)
        if made.status < 400 and made.json["state"] == "held":
            made = agent.post(f"/v1/handoffs/{made.json['id']}/attempts", {})
        return MADE if made.status < 400 else _refused(made)

    def interrupt(self, act: Act) -> None:
        """Let the program die between a call and its outcome."""
        self._stage.interrupts = True
        self.call(act)
        self._stage.interrupts = False

    def again(self) -> None:
        """Let the attempt fail."""
        agent, run = self._open()
        agent.post(f"/v1/runs/{run}/close", {"outcome": "failed", "error": {"code": "model.gone"}})
        self._run = None

    def close(self) -> None:
        """Close the run."""
        if self._run is not None:
            agent, run = self._run
            agent.post(f"/v1/runs/{run}/close", {})

    def _open(self) -> tuple[Visitor, str]:
        if self._run is None:
            self._run = self._start() if self._stage.handoff is None else self._take(self._stage.handoff)
        return self._run

    def _start(self) -> tuple[Visitor, str]:
        relay = self._stage.relay()
        # Over HTTP every root is enforced; this one is as the row of the table says.
        live = relay.start("Do it", by=PERSON, mode=self._stage.mode, items=self._stage.allowed.constraints)
        return self._let_in(relay, live.id, live), live.id

    def _take(self, handoff: LiveHandoff) -> tuple[Visitor, str]:
        """Take the next attempt, in the name of the lead that handed it off, as a client on another machine does."""
        lead = self._lead or self._let_in(self._stage.relay(), handoff.info().parent, None)
        self._lead = lead
        taken = lead.post(f"/v1/handoffs/{handoff.id}/attempts", {})
        assert 201 == taken.status, taken.body
        return Visitor(lead.app, lead.token, taken.json["proof"]), taken.json["run"]["id"]

    def _let_in(self, relay: Relay, run: RunId, live: LiveRun | None) -> Visitor:
        plane = ControlPlane.over(relay, clock=self._stage.clock)
        token = relay.admin.add_token(PERSON, "agent", by=PERSON, lasts=timedelta(days=30), may=["read:**"])
        if live is not None:
            plane.runs.add(live)
        proof = make_proof(plane.runs.signer_of(run), run, token.id)
        return Visitor(make_app(plane, hosts=hosts_for("127.0.0.1")), token.text, proof)


def _refused(answer: Answered) -> Told:
    said = json.loads(answer.body)["error"]
    return Told(Verdict.FAILED, said["message"]) if said["code"].startswith("store.") else heard(said["message"])


class HttpDoor(PythonDoor):
    """A program on another machine."""

    listener = Listener.MODEL
    always = (ELSEWHERE,)

    def open(self, stage: Stage) -> Opened:
        """Let a program in."""
        if self.on_handoff:
            stage.offer()
        return OpenedOverHttp(stage)


class HttpDoorOnHandoff(HttpDoor):
    """A program on another machine that works on what was handed off."""

    agent = "worker"
    on_handoff = True


class TestHttp(DoorConformance):
    """The suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return HttpDoor()


class TestHttpHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return HttpDoor()


class TestHttpOnHandoff(DoorConformance):
    """The suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return HttpDoorOnHandoff()


class TestHttpOnHandoffHandsOff(HandoffConformance):
    """The table of handoffs, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return HttpDoorOnHandoff()
