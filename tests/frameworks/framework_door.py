"""The doors of all frameworks: an agent of a framework that works for a person, and one that works on a handoff.

A column says how an agent is opened (`opened`), and gets the door suite for both.
"""

from typing import ClassVar

import pytest

from batonpass.testing.doors import Door, DoorConformance, Ending, HandoffConformance, Listener, Opened, Stage
from tests.doors.test_python import PythonDoor
from tests.frameworks.asked_model import OpenedFramework


class FrameworkDoor(PythonDoor):
    """An agent of a framework that works for a person."""

    listener = Listener.MODEL
    cannot: ClassVar = {
        "interruptions": "a model is not ended in the middle of a call: its process is, as a program's",
        "rationale": "an agent of a framework is given a task, and no rationale",
        "may": "the program says what agents may, and not the model that asks them",
    }

    def __init__(self, opened: type[OpenedFramework]) -> None:
        self._opened = opened

    def open(self, stage: Stage) -> Opened:
        """Start an agent."""
        if self.on_handoff:
            stage.offer()
        return self._opened(stage)


class FrameworkDoorOnHandoff(FrameworkDoor):
    """An agent of a framework that works on a handoff; a held call ends its attempt."""

    agent = "worker"
    on_handoff = True
    ended_by = frozenset({Ending.HELD})


class RootDoor(DoorConformance):
    """The door suite, for a root."""

    opened: ClassVar[type[OpenedFramework]]

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return FrameworkDoor(self.opened)


class HandingDoor(HandoffConformance):
    """The table of handoffs, for a root."""

    opened: ClassVar[type[OpenedFramework]]

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return FrameworkDoor(self.opened)


class AttemptDoor(DoorConformance):
    """The door suite, for an attempt at a handoff."""

    opened: ClassVar[type[OpenedFramework]]

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return FrameworkDoorOnHandoff(self.opened)
