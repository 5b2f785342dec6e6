"""The hooks for the Claude Agent SDK, without the SDK: callbacks that record, and that stop nothing."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from batonpass.adapters.claude_agent_sdk import Hooks, record_hooks
from batonpass.adapters.coders.events import EVENTS
from batonpass.errors import StoreBusyError
from batonpass.relay import Relay
from tests.unit.adapters.coders.sessions import SESSION, lines, receipts


@dataclass(kw_only=True)
class HookMatcher:
    """What the SDK has under this name."""

    hooks: list[Any]
    timeout: float | None = None
    on_failure: str | None = None


@pytest.fixture(autouse=True)
def sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be an SDK."""
    module = ModuleType("claude_agent_sdk")
    module.HookMatcher = HookMatcher  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", module)


def told(hooks: Hooks, name: str, **more: object) -> Mapping[str, Any]:
    """Tell a callback what happened, as the SDK does."""
    (matcher,) = hooks[name]
    event = {"hook_event_name": name, "session_id": SESSION, **more}
    found: Mapping[str, Any] = asyncio.run(matcher.hooks[0](event, None, {"signal": None}))
    return found


def test_there_is_a_hook_for_every_event(tmp_path: Path) -> None:
    """In the shape that the options take; an error of ours counts as no decision."""
    with Relay.open("memory:") as relay, record_hooks(relay, tmp_path) as hooks:
        assert list(EVENTS) == list(hooks)
        assert {"continue"} == {matcher.on_failure for (matcher,) in hooks.values()}


def test_a_session_is_recorded_until_the_context_is_left(tmp_path: Path) -> None:
    """The SDK does not say when a session is over."""
    with Relay.open("memory:") as relay:
        with record_hooks(relay, tmp_path, by="user:ana") as hooks:
            told(hooks, "UserPromptSubmit", prompt="Go", prompt_id="p1")
            told(hooks, "PreToolUse", tool_name="Read", tool_input={}, tool_use_id="c1")
        found = lines(relay)

    assert [
        "run-1 run.started p1",
        "run-1 tool.requested c1",
        f"run-1 run.closed end/{SESSION} closed",
    ] == found


def test_by_default_the_projects_own_ledger_is_used(tmp_path: Path) -> None:
    """It is founded if there is none, and its keys are where another process finds them."""
    hooks = record_hooks(project=tmp_path, by="user:ana")
    told(hooks, "UserPromptSubmit", prompt="Go", prompt_id="p1")
    kept = [path.suffix for path in (tmp_path / ".batonpass" / "runs").iterdir()]
    hooks.close()

    with Relay.open(f"sqlite:///{tmp_path}/.batonpass/ledger.db", create=False) as relay:
        assert ([".key"], ["run.started", "run.closed"]) == (kept, [line.split()[1] for line in lines(relay)])


def test_an_error_of_ours_stops_nothing_and_leaves_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call goes on; that something is missing is recorded as soon as anything can be."""

    def busy(*_: object) -> None:
        raise StoreBusyError("somebody")

    with Relay.open("memory:") as relay, record_hooks(relay, tmp_path, by="user:ana") as hooks:
        told(hooks, "UserPromptSubmit", prompt="Go", prompt_id="p1")
        with monkeypatch.context() as patched:
            patched.setattr(relay.store, "append", busy)
            answer = told(hooks, "PreToolUse", tool_name="Bash", tool_input={"command": "x"}, tool_use_id="c1")
        told(hooks, "PreToolUse", tool_name="Read", tool_input={}, tool_use_id="c2")
        found = lines(relay)

    assert ({}, ["run-1 run.started p1", "run-1 run.gap", "run-1 tool.requested c2"]) == (answer, found)


def test_an_event_in_another_shape_leaves_a_gap_where_it_belongs(tmp_path: Path) -> None:
    """Nobody knows what it said; that it was there is known."""
    with Relay.open("memory:") as relay, record_hooks(relay, tmp_path, by="user:ana") as hooks:
        told(hooks, "UserPromptSubmit", prompt="Go", prompt_id="p1")
        assert {} == told(hooks, "PreToolUse", tool_name="Bash")
        told(hooks, "Stop", last_assistant_message="Done")
        (gap,) = receipts(relay, "run.gap")

    assert gap["content"]["reason"].startswith("PreToolUse: tool_use_id")


def test_under_rules_what_cannot_be_recorded_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails closed, and says why."""
    monkeypatch.setenv("BATONPASS_HOME", str(tmp_path / ".batonpass"))

    def busy(*_: object) -> None:
        raise StoreBusyError("somebody")

    with Relay.open("memory:") as relay, record_hooks(relay, tmp_path, by="user:ana", enforce=True) as hooks:
        told(hooks, "UserPromptSubmit", prompt="Go", prompt_id="p1")
        with monkeypatch.context() as patched:
            patched.setattr(relay.store, "append", busy)
            answer = told(hooks, "PreToolUse", tool_name="Read", tool_input={}, tool_use_id="c1")
        assert {"block"} == {matcher.on_failure for (matcher,) in hooks.values()}

    assert "deny" == answer["hookSpecificOutput"]["permissionDecision"]
    assert "could not record this call" in answer["hookSpecificOutput"]["permissionDecisionReason"]
