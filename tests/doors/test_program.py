"""The door of programs in any language: a process that speaks JSON lines. It always works on a handoff."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any, Final

import pytest

from batonpass.handoff.programs.program import Program
from batonpass.testing.doors import (
    MADE,
    Act,
    Delegate,
    Door,
    DoorConformance,
    Ending,
    HandoffConformance,
    Interrupted,
    Listener,
    Opened,
    Stage,
    Told,
    Verdict,
    heard,
)
from tests.doors.test_python import PythonDoorOnHandoff
from tests.doors.tools import NAMES, arguments_of, tools_on

# It asks for whatever a test writes into one pipe, and writes what it is answered into another.
SCRIPT: Final = """
import sys
sys.stdin.readline()
with open(sys.argv[1]) as asked, open(sys.argv[2], "w") as answers:
    for line in asked:
        print(line, end="", flush=True)
        answers.write(sys.stdin.readline())
        answers.flush()
        if '"type": "report"' in line or '"type": "fail"' in line:
            break
"""
ENDED: Final = b"null\n"  # what stands in the place of an answer where nobody is left to be answered


class OpenedProgram(Opened):
    """A program that is told by a test what to ask for."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tools = tools_on(stage)
        self._working: threading.Thread | None = None
        self._asked, self._answers = self._pipe("asked"), self._pipe("answers")

    def call(self, act: Act) -> Told:
        """Let the program ask for a call."""
        answer = self._ask({"type": "call", "tool": NAMES[type(act)], "arguments": arguments_of(act)})
        if answer is None:
            return Told(Verdict.HELD)
        return MADE if answer["ok"] else heard(answer["error"]["message"])

    def hand_off(self, task: Delegate) -> Told:
        """Let the program hand a task off, to somebody who does it at once."""
        asked = {"type": "hand_off", "to": task.to, "task": task.task, "may": task.may}
        answer = self._ask(asked if task.rationale is None else {**asked, "rationale": task.rationale})
        assert answer is not None
        if not answer["ok"]:
            return heard(answer["error"]["message"])
        return heard(answer["result"]["reason"] or "") if answer["result"]["state"] == "held" else MADE

    def interrupt(self, act: Act) -> None:
        """End everything in the middle of a call."""
        self._stage.interrupts = True
        assert Told(Verdict.HELD) == self.call(act)
        self._stage.interrupts = False

    def again(self) -> None:
        """Let the program say that it failed."""
        if self._working is not None:
            self._ask({"type": "fail", "code": "gone", "message": "the model is gone"})
            self._end()

    def close(self) -> None:
        """Let the program report."""
        if self._working is not None:
            self._ask({"type": "report", "result": "done"})
            self._end()
        for pipe in (self._asked, self._answers):
            pipe.close()

    def _ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        if self._working is None:
            self._working = threading.Thread(target=self._work, daemon=True)
            self._working.start()
        self._asked.write(json.dumps({"id": 1, **message}).encode() + b"\n")
        answer: dict[str, Any] | None = json.loads(self._answers.readline())
        if answer is None:
            self._end()
        return answer

    def _end(self) -> None:
        assert self._working is not None
        self._working.join()
        self._working = None

    def _work(self) -> None:
        """Let a process work on the handoff until it has reported, failed, or is ended."""
        assert self._stage.handoff is not None
        command = [sys.executable, "-I", "-S", "-c", SCRIPT, self._asked.name, self._answers.name]
        answered = False
        try:
            result = self._stage.handoff.run(Program(command, tools=self._tools))
            answered = result.delivered or "the model is gone" in (result.reason or "")
        except Interrupted:
            pass
        finally:
            if not answered:
                self._answers.write(ENDED)

    def _pipe(self, name: str) -> IO[bytes]:
        path = Path(self._stage.directory).parent / name
        os.mkfifo(path)
        # For both: then neither opening nor closing waits for the other side.
        return path.open("r+b", buffering=0)


class ProgramDoor(PythonDoorOnHandoff):
    """A process that asks for calls of the tools that it is given; a held call ends it."""

    listener = Listener.MODEL
    ended_by = frozenset({Ending.HELD})

    def open(self, stage: Stage) -> Opened:
        """Hand a task to the program."""
        stage.offer()
        return OpenedProgram(stage)


class TestProgram(DoorConformance):
    """The suite, with a real process in every case."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return ProgramDoor()


class TestProgramHandsOff(HandoffConformance):
    """The table of handoffs, with a real process in every case."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return ProgramDoor()
