"""The doors of coding agents besides Claude Code: the one recorder, told in each agent's own words."""

import pytest

from batonpass.adapters.tool_kinds import Coder
from batonpass.testing.doors import Door, DoorConformance, HandoffConformance
from tests.doors.coders import CoderDoor


class CodexDoor(CoderDoor):
    """Codex, whose editor takes a patch."""

    agent = "codex"
    coder = Coder.CODEX


class CopilotDoor(CoderDoor):
    """Copilot CLI, without ids of calls."""

    agent = "copilot"
    coder = Coder.COPILOT


class QwenDoor(CoderDoor):
    """Qwen Code."""

    agent = "qwen"
    coder = Coder.QWEN


class GeminiDoor(CoderDoor):
    """Gemini CLI, with names of its own and no ids of calls."""

    agent = "gemini"
    coder = Coder.GEMINI


class OpenCodeDoor(CoderDoor):
    """OpenCode, as our plugin words its events."""

    agent = "opencode"
    coder = Coder.OPENCODE


class CursorDoor(CoderDoor):
    """Cursor, as its documents describe it."""

    agent = "cursor"
    coder = Coder.CURSOR


class DroidDoor(CoderDoor):
    """Factory droid, without ids of calls."""

    agent = "droid"
    coder = Coder.DROID


DOORS = (CodexDoor, CopilotDoor, QwenDoor, GeminiDoor, OpenCodeDoor, CursorDoor, DroidDoor)


@pytest.mark.parametrize("door", [one() for one in DOORS], ids=[one.agent for one in DOORS], scope="class")
class TestCoders(DoorConformance):
    """The suite, for each agent."""

    @pytest.fixture
    def door(self, door: Door) -> Door:
        """Return the door."""
        return door


@pytest.mark.parametrize("door", [one() for one in DOORS], ids=[one.agent for one in DOORS], scope="class")
class TestCodersHandOff(HandoffConformance):
    """The table of handoffs, for sub-agents of each agent."""

    @pytest.fixture
    def door(self, door: Door) -> Door:
        """Return the door."""
        return door
