"""The door of commands: `run.shell`. Its one tool is called `shell`, and what it does stands in its words."""

import shlex
from pathlib import Path
from typing import ClassVar

import pytest

from batonpass.errors import BatonpassError
from batonpass.handoff.live.faces import LiveRun
from batonpass.testing.doors import (
    MADE,
    PERSON,
    Act,
    Door,
    DoorConformance,
    Fetch,
    Opened,
    Pay,
    Read,
    Stage,
    Told,
    Write,
    WriteAll,
    raised,
)
from batonpass.testing.doors.stage import PAYMENTS

PAGE = "out/known.txt"  # what a command reads from outside is a file here; that it is from outside, its caller says


def command_of(act: Act) -> list[str]:
    """Return the command that makes an act."""
    match act:
        case Write(path=path):
            return ["tee", path]
        case WriteAll(files=files):
            return ["tee", *(path for path, _ in files)]
        case Read(path=path):
            return ["cat", path]
        case Fetch():
            return ["cat", PAGE]
        case Pay():
            return ["dd", f"of={PAYMENTS}", "oflag=append", "conv=notrunc", "status=none"]


def fed(act: Act) -> str | None:
    """Return what the command reads from its input."""
    match act:
        case Write(text=text) | WriteAll(files=((_, text), *_)):
            return text
        case Pay(to=to, amount=amount):
            return f"{to} {amount}\n"
        case _:
            return None


class OpenedShell(Opened):
    """A program that runs commands."""

    def __init__(self, run: LiveRun) -> None:
        self._run = run

    def call(self, act: Act) -> Told:
        """Run a command."""
        try:
            self._run.shell(
                command_of(act),
                cwd=Path.cwd(),
                stdin=fed(act),
                reads=isinstance(act, Read | Fetch),
                external=isinstance(act, Fetch | Pay),
            )
        except BatonpassError as error:
            return raised(error)
        return MADE

    def close(self) -> None:
        """Close the run."""
        self._run.close()


class ShellDoor(Door):
    """A program that runs commands: a grant names the program, and nobody says what can be undone."""

    cannot: ClassVar = {
        "targets": "a command names nothing that it changes",
        "grants by target": "a grant names the program, and not what it is run on",
        "reversible": "nobody knows whether what a command did can be undone",
        "arguments": "a command has words and no arguments with names",
    }

    def tool(self, _: Act) -> str:
        """Return the one name."""
        return "shell"

    def pattern(self, act: Act) -> str:
        """Return the program."""
        return f"run:{command_of(act)[0]}"

    def besides(self, act: Act) -> tuple[str, ...]:
        """Return the file that the command writes."""
        return (f"write:{act.path}",) if isinstance(act, Write) else ()

    def target(self, _: Act) -> str | None:
        """Return nothing."""
        return None

    def shown(self, act: Act) -> str | None:
        """Return the command."""
        return shlex.join(command_of(act))

    def tiers(self, act: Act) -> tuple[str, ...]:
        """Return that nobody said anything of what is written."""
        return ("undeclared",) if isinstance(act, Write | WriteAll) else super().tiers(act)

    def open(self, stage: Stage) -> Opened:
        """Start a run."""
        return OpenedShell(stage.relay().start("Do it", by=PERSON, mode=stage.mode))


class TestShell(DoorConformance):
    """The suite, for commands."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return ShellDoor()
