"""The door of programs on other machines: each call is judged over HTTP, and made where the program is."""

import json
from datetime import timedelta
from typing import Any

import pytest

from batonpass.handoff.tools.declaration import declared_of
from batonpass.server.acts.call_acts import ELSEWHERE
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from batonpass.server.run_proof import make_proof
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
            return _refused(begun)
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

    def close(self) -> None:
        """Close the run."""
        if self._run is not None:
            agent, run = self._run
            agent.post(f"/v1/runs/{run}/close", {})

    def _open(self) -> tuple[Visitor, str]:
        if self._run is None:
            stage = self._stage
            relay = stage.relay()
            plane = ControlPlane.over(relay, clock=stage.clock)
            token = relay.admin.add_token(PERSON, "agent", by=PERSON, lasts=timedelta(days=30), may=["read:**"])
            # Over HTTP every root is enforced; this one is as the row of the table says.
            live = relay.start("Do it", by=PERSON, mode=stage.mode, items=stage.allowed.constraints)
            plane.runs.add(live)
            proof = make_proof(plane.runs.signer_of(live.id), live.id, token.id)
            self._run = Visitor(make_app(plane, hosts=hosts_for("127.0.0.1")), token.text, proof), live.id
        return self._run


def _refused(answer: Answered) -> Told:
    said = json.loads(answer.body)["error"]
    return Told(Verdict.FAILED, said["message"]) if said["code"].startswith("store.") else heard(said["message"])


class HttpDoor(PythonDoor):
    """A program on another machine."""

    listener = Listener.MODEL
    always = (ELSEWHERE,)

    def open(self, stage: Stage) -> Opened:
        """Let a program in."""
        return OpenedOverHttp(stage)


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
