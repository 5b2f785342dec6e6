"""The doors of coding agents besides Claude Code: the one recorder, told in each agent's own words."""

import pytest

from batonpass.adapters.tool_kinds import Coder
from batonpass.testing.doors import Act, Door, DoorConformance, HandoffConformance, Read
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


class ClineDoor(CoderDoor):
    """Cline, which takes no refusal of one call: it is only recorded."""

    agent = "cline"
    coder = Coder.CLINE
    refuses = False

    def pattern(self, act: Act) -> str:
        """Return the tool for a read, which takes several files."""
        return f"call:{self.tool(act)}" if isinstance(act, Read) else super().pattern(act)


DOORS = (CodexDoor, CopilotDoor, QwenDoor, GeminiDoor, OpenCodeDoor, CursorDoor, DroidDoor, ClineDoor)


@pytest.mark.parametrize("door", [one() for one in DOORS], ids=[one.agent for one in DOORS], scope="class")
class TestCoders(DoorConformance):
    """The suite, for each agent."""

    @pytest.fixture
    def door(self, door: Door) -> Door:
        """Return the door."""
        return door


# A call of Cline that starts a sub-agent names no agent, which every row of this table does.
NAMING = [one for one in DOORS if one is not ClineDoor]


@pytest.mark.parametrize("door", [one() for one in NAMING], ids=[one.agent for one in NAMING], scope="class")
class TestCodersHandOff(HandoffConformance):
    """The table of handoffs, for sub-agents of each agent."""

    @pytest.fixture
    def door(self, door: Door) -> Door:
        """Return the door."""
        return door
