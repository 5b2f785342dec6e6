"""The door of asynchronous programs: `await run.call`, of a root and of what was handed off."""

import asyncio

import pytest

from batonpass import Brief
from batonpass.aio import AsyncRelay, AsyncRun
from batonpass.errors import BatonpassError
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
from tests.doors.test_python import PythonDoor
from tests.doors.tools import NAMES, arguments_of, tools_on


class OpenedAsyncRun(Opened):
    """A program with a run and a loop."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tools = tools_on(stage)
        self._loop = asyncio.Runner()
        self._run: AsyncRun | None = None

    def call(self, act: Act) -> Told:
        """Call a function."""
        try:
            self._loop.run(self._call(act))
        except BatonpassError as error:
            told = raised(error)
            if told.verdict is Verdict.HELD and self._stage.handoff is not None:
                self._run = None
            return told
        return MADE

    async def _call(self, act: Act) -> None:
        run = await self._open()
        await run.call(self._tools[NAMES[type(act)]], **arguments_of(act))

    def hand_off(self, task: Delegate) -> Told:
        """Hand a task off, and take it here."""
        try:
            self._loop.run(self._hand_off(task))
        except BatonpassError as error:
            return raised(error)
        return MADE

    async def _hand_off(self, task: Delegate) -> None:
        run = await self._open()
        handoff = await run.hand_off(task.to, task.task, brief=Brief(rationale=task.rationale), may=task.may)
        if await handoff.state() is State.HELD:
            await handoff.accept()

    def interrupt(self, act: Act) -> None:
        """End the program before the function returns."""
        self._stage.interrupts = True
        with pytest.raises(Interrupted):
            self.call(act)
        self._stage.interrupts = False

    def again(self) -> None:
        """Let the attempt fail."""
        self._loop.run(self._fail())
        self._run = None
        self._stage.retry()

    async def _fail(self) -> None:
        run = await self._open()
        await run.fail(RuntimeError("the model is gone"))

    def close(self) -> None:
        """Close the run."""
        if self._run is not None:
            self._loop.run(self._run.close())
        self._loop.close()

    async def _open(self) -> AsyncRun:
        stage = self._stage
        if self._run is None:
            relay = AsyncRelay(stage.relay())
            if stage.handoff is not None:
                handoff = await relay.handoff(stage.handoff.id)
                self._run = await handoff.accept()
            else:
                constraints = stage.allowed.constraints
                self._run = await relay.start("Do it", by=PERSON, mode=stage.mode, items=constraints)
        return self._run


class AsyncDoor(PythonDoor):
    """A program that awaits its calls."""

    def open(self, stage: Stage) -> Opened:
        """Start a run."""
        if self.on_handoff:
            stage.offer()
        return OpenedAsyncRun(stage)


class AsyncDoorOnHandoff(AsyncDoor):
    """A program that works on what was handed off."""

    agent = "worker"
    on_handoff = True


class TestAsync(DoorConformance):
    """The suite, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AsyncDoor()


class TestAsyncHandsOff(HandoffConformance):
    """The table of handoffs, for a root."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AsyncDoor()


class TestAsyncOnHandoff(DoorConformance):
    """The suite, for an attempt at a handoff."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return AsyncDoorOnHandoff()
