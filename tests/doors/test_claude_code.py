"""The door of Claude Code's hooks: the recorder behind the hook command, in this process, and the command itself."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from batonpass.adapters.coders.dialects.dialect import deny_like_claude as denied
from batonpass.adapters.coders.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.errors import BatonpassError
from batonpass.relay import recording_of
from batonpass.testing.doors import PERSON, Door, DoorConformance, HandoffConformance, Opened, Stage
from tests.doors.claude_code import ClaudeCodeDoor, OpenedSession
from tests.doors.tools import FEW
from tests.integration.cli.hooking import Hooked as Command


class Hooked:
    """What the hook command does with an event, in this process."""

    def __init__(self, stage: Stage) -> None:
        self._enforced = stage.enforced
        self._relay = stage.relay()
        tree = WorkTree(stage.directory, environment={"PATH": "/usr/bin:/bin"}, without=(".batonpass",), watch=False)
        self._recorder = HookRecorder(
            self._relay,
            stage.directory,
            mode=stage.mode,
            by=PERSON,
            work_tree=tree,
            policy=DirectoryPolicy(stage.directory),
        )

    def tell(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record an event; of one that cannot be recorded, a gap is noted as soon as one can be."""
        try:
            return self._recorder.handle(event)
        except BatonpassError as error:
            self._recorder.note_gap(None, str(error))
            return denied(str(error)) if self._enforced and event["hook_event_name"] == "PreToolUse" else {}

    def close(self) -> None:
        """Let go of the work tree."""
        self._recorder.close()


class HookDoor(ClaudeCodeDoor):
    """The hooks of a session."""

    def open(self, stage: Stage) -> Opened:
        """Begin a session."""
        hooked = Hooked(stage)
        return OpenedSession(stage, hooked.tell, hooked.close)


class TestHooks(DoorConformance):
    """The suite, for the hooks."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return HookDoor()


class TestHooksHandOff(HandoffConformance):
    """The table of handoffs, for sub-agents."""

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return HookDoor()


class HookProcessDoor(ClaudeCodeDoor):
    """The hook command, started for every event, and the recorder that stays behind."""

    in_process = False

    def open(self, stage: Stage) -> Opened:
        """Begin a session in a repository with a ledger."""
        _ = recording_of(stage.office)  # founds it, as `batonpass init claude-code` does
        subprocess.run(["git", "init", "--quiet"], cwd=stage.directory, check=True)
        subprocess.run(["git", "config", "user.email", "ana"], cwd=stage.directory, check=True)
        command = Command(stage.directory, ["--enforce"] if stage.enforced else [])

        def tell(event: Mapping[str, Any]) -> Mapping[str, Any]:
            answer: Mapping[str, Any] = json.loads(command.tell(json.dumps(event).encode()) or "{}")
            return answer

        def close() -> None:
            for pid in command.recorders():
                command.kill(pid)

        return OpenedSession(stage, tell, close)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds processes by /proc")
class TestHookProcess(DoorConformance):
    """A few rows of the suite, for the real hook command."""

    situations = FEW

    @pytest.fixture
    def door(self) -> Door:
        """Return the door."""
        return HookProcessDoor()
