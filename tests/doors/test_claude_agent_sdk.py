"""The door of the Claude Agent SDK: the same events, as callbacks of a program; the ledger is the project's own."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from batonpass.adapters.claude_agent_sdk import record_hooks
from batonpass.testing.doors import PERSON, Door, DoorConformance, Opened, Stage
from tests.doors.claude_code import ClaudeCodeDoor, OpenedSession


@dataclass(kw_only=True)
class HookMatcher:
    """What the SDK has under this name."""

    hooks: list[Any]
    timeout: float | None = None
    on_failure: str | None = None


class SdkDoor(ClaudeCodeDoor):
    """The callbacks of a program."""

    in_process = False  # it opens the ledger of the project itself

    def open(self, stage: Stage) -> Opened:
        """Begin a session."""
        hooks = record_hooks(project=stage.directory, enforce=stage.enforced, by=PERSON)

        def tell(event: Mapping[str, Any]) -> Mapping[str, Any]:
            (matcher,) = hooks[event["hook_event_name"]]
            answer: Mapping[str, Any] = asyncio.run(matcher.hooks[0](event, None, {"signal": None}))
            return answer

        return OpenedSession(stage, tell, hooks.close)


class TestSdk(DoorConformance):
    """The suite, for the callbacks."""

    @pytest.fixture
    def door(self, monkeypatch: pytest.MonkeyPatch) -> Door:
        """Return the door, as if the SDK were there."""
        module = ModuleType("claude_agent_sdk")
        module.HookMatcher = HookMatcher  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "claude_agent_sdk", module)
        return SdkDoor()
