"""The four acts as Claude Code's tools, and the events that it sends about them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from batonpass.testing.doors import (
    MADE,
    Act,
    Delegate,
    Door,
    Fetch,
    Listener,
    Opened,
    Pay,
    Read,
    Stage,
    Told,
    Write,
    WriteAll,
    heard,
)

SESSION: Final = "11111111-2222-4333-8444-555555555555"
TOOLS: Final[dict[type, str]] = {Write: "Write", Read: "Read", Fetch: "WebFetch", Pay: "mcp__bank__pay"}

Tell: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def input_of(act: Act) -> dict[str, Any]:
    """Return what a tool is called with."""
    match act:
        case Write(path=path, text=text):
            return {"file_path": path, "content": text}
        case Read(path=path):
            return {"file_path": path}
        case Fetch(url=url):
            return {"url": url, "prompt": "What does it say?"}
        case Pay(to=to, amount=amount):
            return {"to": to, "amount": amount}
        case WriteAll():
            raise NotImplementedError


class OpenedSession(Opened):
    """A session of Claude Code: each call is asked about before, and told of after."""

    def __init__(self, stage: Stage, tell: Tell, close: Callable[[], None]) -> None:
        self._stage = stage
        self._tell = tell
        self._close = close
        self._calls = 0
        self._event("UserPromptSubmit", prompt="Do it", prompt_id="p1")

    def call(self, act: Act) -> Told:
        """Let the model ask for a call."""
        self._calls += 1
        about = {
            "tool_name": TOOLS[type(act)],
            "tool_input": input_of(act),
            "tool_use_id": f"toolu_{self._calls}",
        }
        answer = self._event("PreToolUse", **about)
        said = answer.get("hookSpecificOutput", {})
        if said.get("permissionDecision") == "deny":
            return heard(said["permissionDecisionReason"])
        self._event("PostToolUse", **about, tool_response=self._stage.do(act))
        return MADE

    def hand_off(self, task: Delegate) -> Told:
        """Let the model start a sub-agent."""
        self._calls += 1
        about = {
            "tool_name": "Agent",
            "tool_input": {"prompt": task.task, "subagent_type": task.to, "description": "help"},
            "tool_use_id": f"toolu_{self._calls}",
        }
        said = self._event("PreToolUse", **about).get("hookSpecificOutput", {})
        return heard(said["permissionDecisionReason"]) if said.get("permissionDecision") == "deny" else MADE

    def close(self) -> None:
        """End the session."""
        self._event("SessionEnd", reason="other")
        self._close()

    def _event(self, name: str, **more: object) -> Mapping[str, Any]:
        event = {
            "hook_event_name": name,
            "session_id": SESSION,
            "transcript_path": str(self._stage.directory.parent / "nowhere.jsonl"),
            "cwd": str(Path.cwd()),
            **more,
        }
        return self._tell(event)


class ClaudeCodeDoor(Door):
    """A session of Claude Code, its main conversation."""

    agent = "claude-code"
    listener = Listener.MODEL
    policy = '[mcp.bank]\ntargets = { pay = "to" }\n'
    cannot: ClassVar = {
        "a payment was named before the stranger's words came": "a grant names a server's tool, and not whom it pays",
        "several files": "no tool of Claude Code's own takes several files",
        "may": "a sub-agent gets all that its session may give",
        "rationale": "nobody says why a sub-agent is started",
        "constraints": "nobody says typed constraints to a session",
        "spelling: as an address": "Write takes a path, and no address",
        "spelling: as an address of this machine": "Write takes a path, and no address",
        "spelling: as an address with escapes": "Write takes a path, and no address",
    }

    def tool(self, act: Act) -> str:
        """Return the tool's name."""
        return TOOLS[type(act)]

    def pattern(self, act: Act) -> str:
        """Return a file by its path, and everything else by the tool."""
        match act:
            case Write(path=path):
                return f"write:{path}"
            case Read(path=path):
                return f"read:{path}"
            case Fetch():
                return "call:WebFetch"
            case Pay():
                return "call:bank/pay"
            case WriteAll():
                raise NotImplementedError
