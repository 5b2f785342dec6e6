"""The door of agents elsewhere: over A2A they hand tasks to ours, from outside, and make no calls here."""

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest

from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.ids import AgentId
from batonpass.model.base.kinds import Relation
from batonpass.model.base.lifecycle import State
from batonpass.model.baton.card import Card
from batonpass.model.bodies.body import HandoffInitiated
from batonpass.relay import Relay
from batonpass.server.a2a.incoming_task import CALLER, task_for
from batonpass.server.a2a.mount import A2aDoor
from batonpass.server.a2a.settings import A2aSettings
from batonpass.server.access import AccessLimits
from batonpass.server.app import make_app
from batonpass.server.boundary import hosts_for
from batonpass.server.control_plane import ControlPlane
from batonpass.testing.doors import (
    MADE,
    PERSON,
    Act,
    Delegate,
    Door,
    DoorConformance,
    HandoffConformance,
    Listener,
    Opened,
    Stage,
    Told,
    Verdict,
)
from batonpass.testing.doors.stage import HELPERS
from tests.doors.test_python import OpenedRun, PythonDoor
from tests.unit.server.visitor import Visitor

ALWAYS_ENFORCED = "whoever asks over A2A is from outside, and is always enforced"
NO_BUDGET = "nobody says a budget over A2A"
PAYMENTS_WAIT = "the words of whoever asks over A2A come first, so taint holds every payment"


class OpenedOverA2a(Opened):
    """An agent elsewhere that sends messages to ours. Each message begins a root of its own."""

    def __init__(self, stage: Stage, cards: Sequence[Card], may_delegate: tuple[str, ...]) -> None:
        relay = stage.relay()
        for card in cards:
            relay.introduce(card)
        limits = stage.allowed.limits
        plane = ControlPlane.over(
            relay, clock=stage.clock, limits=None if limits is None else AccessLimits(public_budget=limits)
        )
        door = A2aDoor(plane, A2aSettings(address="http://127.0.0.1:7420"))
        self._visitor = Visitor(make_app(plane, hosts=hosts_for("127.0.0.1"), mounts=door.routes))
        if not any(card.public for card in cards):
            self._visitor.token = relay.admin.add_token(
                PERSON,
                "agent",
                by="user:root",
                lasts=timedelta(days=1),
                may=stage.allowed.may,
                may_delegate=may_delegate,
            ).text
        self._sent = 0

    def call(self, act: Act) -> Told:
        """Do nothing: whoever is asked makes the calls, at a door of its own."""
        raise NotImplementedError

    def hand_off(self, task: Delegate) -> Told:
        """Send a message to an agent, and return what became of its task."""
        self._sent += 1
        message = {"messageId": f"m-{self._sent}", "role": "ROLE_USER", "parts": [{"text": task.task}]}
        told = self._visitor.post(
            f"/a2a/agents/{task.to}/message:send",
            {"message": message, "configuration": {"returnImmediately": True}},
            a2a_version="1.0",
        )
        assert 200 == told.status, told.body
        return _told(told.json["task"]["status"])

    def close(self) -> None:
        """Say nothing: a caller has nothing to close."""


def _told(status: dict[str, Any]) -> Told:
    words = json.dumps(status) if "message" not in status else status["message"]["parts"][0]["text"]
    match status["state"]:
        case "TASK_STATE_REJECTED":
            # The code of the error comes after the sentence.
            return Told(Verdict.DENIED, re.sub(r" \[[a-z_.]+\]$", "", words))
        case "TASK_STATE_AUTH_REQUIRED":
            return Told(Verdict.HELD, words)
        case "TASK_STATE_SUBMITTED":
            return MADE
        case _:
            return Told(Verdict.FAILED, words)


class A2aAskingDoor(Door):
    """An agent elsewhere that hands tasks to ours."""

    agent = CALLER
    listener = Listener.STRANGER
    relation = Relation.EXTERNAL_TO_AGENT
    offered = State.READY
    cannot = MappingProxyType(
        {
            "observed": ALWAYS_ENFORCED,
            "rationale": "a message over A2A says no rationale",
            "may": "a caller over A2A cannot ask for more: what it says only narrows what its token gives",
            "the grant was revoked": (
                "each message over A2A begins a root of its own, and a revoked token is not let in"
            ),
        }
    )

    def tool(self, act: Act) -> str:
        """Say that there is none."""
        raise NotImplementedError

    def pattern(self, act: Act) -> str:
        """Say that there is none."""
        raise NotImplementedError

    def task(self, asked: Delegate) -> str:
        """Return what the card says. The caller's words are data, and never the task."""
        return task_for(Card(agent=AgentId(asked.to)), ["request.txt"])

    def open(self, stage: Stage) -> Opened:
        """Let a caller in."""
        # A caller is always enforced. In rows that grant nothing it may pass on something harmless.
        may_delegate = stage.allowed.may_delegate or (() if stage.allowed.may else ("read:**",))
        return OpenedOverA2a(stage, [Card(agent=AgentId(helper)) for helper in HELPERS], may_delegate)


class OpenedTask(OpenedRun):
    """An agent of ours that works on a task which came over A2A."""

    def __init__(self, stage: Stage, relay: Relay) -> None:
        super().__init__(stage)
        self._relay = relay

    def _open(self) -> LiveRun:
        stage = self._stage
        assert stage.handoff is not None
        if self._run is None:
            if stage.handoff.state() is State.FAILED:
                stage.retry()
            lease = self._relay.claim(holder="worker:1", lease_for=timedelta(days=1), agents=[AgentId(stage.agent)])
            assert lease is not None, stage.handoff.state()
            self._run = stage.handoff.accept(lease=lease)
        return self._run


class A2aAskedDoor(PythonDoor):
    """An agent of ours that somebody asked over A2A: its caller's words came first, so it is tainted."""

    agent = "worker"
    on_handoff = True
    outside = True
    cannot = MappingProxyType(
        {
            "observed": ALWAYS_ENFORCED,
            "constraints": "nobody says typed constraints over A2A",
            "a grant has ended": "what a token gives over A2A has no end of its own",
            "a budget of calls is used up": NO_BUDGET,
            "what an earlier attempt finished is not counted again": NO_BUDGET,
            "a payment came before a stranger's words": PAYMENTS_WAIT,
            "what leaves us is held by its tier": PAYMENTS_WAIT,
            "an earlier attempt finished the call": PAYMENTS_WAIT,
        }
    )

    def open(self, stage: Stage) -> Opened:
        """Let somebody ask the agent."""
        may = stage.allowed.may or ("call:**", "pay:**", "read:**", "write:**")
        # Limits are set for callers without a token; whoever has one has what the token says.
        public = stage.allowed.limits is not None
        card = Card(agent=AgentId(stage.agent), ceiling=may if public else None, public=public)
        assert MADE == OpenedOverA2a(stage, [card], may).hand_off(Delegate(stage.agent))
        relay = stage.relay()
        stage.handoff = relay.handoff(stage.bodies(HandoffInitiated)[-1].handoff)
        return OpenedTask(stage, relay)


class TestA2aAsked(DoorConformance):
    """The suite, for an agent that was asked over A2A."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return A2aAskedDoor()


class TestA2aHandsOff(HandoffConformance):
    """The table of handoffs, for a caller from outside."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return A2aAskingDoor()
