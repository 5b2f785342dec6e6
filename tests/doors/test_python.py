"""The door of Python programs: `run.call`, of a root and of what was handed off."""

import pytest

from batonpass import Brief
from batonpass.errors import BatonpassError
from batonpass.handoff.live.faces import LiveRun
from batonpass.model.base.lifecycle import State
from batonpass.testing.doors import (
    MADE,
    PERSON,
    Act,
    Delegate,
    Door,
    DoorConformance,
    HandoffConformance,
    Interrupted,
    Opened,
    Stage,
    Told,
    Verdict,
    raised,
)
from tests.doors.tools import NAMES, arguments_of, pattern_of, tools_on


class OpenedRun(Opened):
    """A program with a run."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tools = tools_on(stage)
        self._run: LiveRun | None = None

    def call(self, act: Act) -> Told:
        """Call a function."""
        run = self._open()
        try:
            run.call(self._tools[NAMES[type(act)]], **arguments_of(act))
        except BatonpassError as error:
            told = raised(error)
            if told.verdict is Verdict.HELD and self._stage.handoff is not None:
                self._run = None
            return told
        return MADE

    def hand_off(self, task: Delegate) -> Told:
        """Hand a task off, and take it here."""
        try:
            handoff = self._open().hand_off(task.to, task.task, brief=Brief(rationale=task.rationale), may=task.may)
            if handoff.state() is State.HELD:
                handoff.accept()
        except BatonpassError as error:
            return raised(error)
        return MADE

    def interrupt(self, act: Act) -> None:
        """End the program before the function returns."""
        self._stage.interrupts = True
        with pytest.raises(Interrupted):
            self.call(act)
        self._stage.interrupts = False

    def again(self) -> None:
        """Let the attempt fail."""
        self._open().fail(RuntimeError("the model is gone"))
        self._run = None

    def close(self) -> None:
        """Close the run."""
        if self._run is not None:
            self._run.close()

    def _open(self) -> LiveRun:
        stage = self._stage
        if self._run is None:
            if stage.handoff is not None:
                self._run = stage.handoff.accept()
            else:
                self._run = stage.relay().start("Do it", by=PERSON, mode=stage.mode, items=stage.allowed.constraints)
        return self._run


class PythonDoor(Door):
    """A program that calls functions."""

    def tool(self, act: Act) -> str:
        """Return the function's name."""
        return NAMES[type(act)]

    def pattern(self, act: Act) -> str:
        """Return action and target."""
        return pattern_of(act)

    def open(self, stage: Stage) -> Opened:
        """Start a run."""
        if self.on_handoff:
            stage.offer()
        return OpenedRun(stage)


class PythonDoorOnHandoff(PythonDoor):
    """A program that works on what was handed off."""

    agent = "worker"
    on_handoff = True


class TestPython(DoorConformance):
    """The suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return PythonDoor()


class TestPythonHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return PythonDoor()


class TestPythonOnHandoffHandsOff(HandoffConformance):
    """The table of handoffs, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return PythonDoorOnHandoff()


class TestPythonOnHandoff(DoorConformance):
    """The suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return PythonDoorOnHandoff()
