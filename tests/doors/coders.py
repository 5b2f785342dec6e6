"""The acts as tools of coding agents, and the events that each of them sends about them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.rules.directory_policy import DirectoryPolicy
from batonpass.adapters.coders.session.hook_recorder import HookRecorder
from batonpass.adapters.tool_kinds import Coder
from batonpass.attribution.worktree.tree import WorkTree
from batonpass.errors import BatonpassError
from batonpass.testing.doors import (
    MADE,
    PERSON,
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

SESSION: Final = "22222222-2222-4333-8444-555555555555"
Given = Callable[[Any], dict[str, Any]]


def patch_of(path: str, text: str) -> str:
    """Return the patch that writes a file."""
    lines = "\n".join(f"+{line}" for line in text.splitlines())
    return f"*** Begin Patch\n*** Add File: {path}\n{lines}\n*** End Patch"


class Tools:
    """How one agent names the tools of the acts, and their arguments."""

    def __init__(
        self,
        names: Mapping[type, str],
        write: Given,
        read: Given = lambda act: {"file_path": act.path},
        fetch: Given = lambda act: {"url": act.url, "prompt": "What does it say?"},
        delegate: tuple[str, str, str | None] = ("agent", "prompt", "subagent_type"),
    ) -> None:
        self.names = names
        self.delegate = delegate
        self._given: dict[type, Given] = {
            Write: write,
            Read: read,
            Fetch: fetch,
            Pay: lambda act: {"to": act.to, "amount": act.amount},
        }

    def given(self, act: Act) -> dict[str, Any]:
        """Return the arguments of an act."""
        return self._given[type(act)](act)


TOOLS: Final[Mapping[Coder, Tools]] = {
    Coder.CODEX: Tools(
        {Write: "apply_patch", Read: "read_file", Fetch: "web_search", Pay: "mcp__bank__pay"},
        write=lambda act: {"command": patch_of(act.path, act.text)},
        fetch=lambda act: {"query": act.url},
        delegate=("spawn_agent", "message", "agent_type"),
    ),
    Coder.COPILOT: Tools(
        {Write: "create", Read: "view", Fetch: "web_fetch", Pay: "bank-pay"},
        write=lambda act: {"path": act.path, "file_text": act.text},
        read=lambda act: {"path": act.path},
        delegate=("task", "prompt", "agent_type"),
    ),
    Coder.QWEN: Tools(
        {Write: "write_file", Read: "read_file", Fetch: "web_fetch", Pay: "mcp__bank__pay"},
        write=lambda act: {"file_path": act.path, "content": act.text},
    ),
    Coder.GEMINI: Tools(
        {Write: "write_file", Read: "read_file", Fetch: "web_fetch", Pay: "mcp_bank_pay"},
        write=lambda act: {"file_path": act.path, "content": act.text},
        delegate=("invoke_agent", "prompt", "agent_name"),
    ),
    Coder.OPENCODE: Tools(
        {Write: "write", Read: "read", Fetch: "webfetch", Pay: "bank_pay"},
        write=lambda act: {"filePath": act.path, "content": act.text},
        read=lambda act: {"filePath": act.path},
        delegate=("task", "prompt", "subagent_type"),
    ),
    Coder.CURSOR: Tools(
        {Write: "Write", Read: "Read", Fetch: "WebFetch", Pay: "mcp__bank__pay"},
        write=lambda act: {"file_path": act.path, "contents": act.text},
        delegate=("Task", "task", "subagent_type"),
    ),
    Coder.CLINE: Tools(
        {Write: "editor", Read: "read_files", Fetch: "fetch_web_content", Pay: "bank__pay"},
        write=lambda act: {"path": act.path, "new_text": act.text},
        read=lambda act: {"files": [{"path": act.path}]},
        fetch=lambda act: {"requests": [{"url": act.url, "prompt": "What does it say?"}]},
        delegate=("spawn_agent", "task", None),
    ),
    Coder.DROID: Tools(
        {Write: "Create", Read: "Read", Fetch: "FetchUrl", Pay: "bank___pay"},
        write=lambda act: {"file_path": act.path, "content": act.text},
        delegate=("Task", "prompt", "subagent_type"),
    ),
}


class OpenedCoder(Opened):
    """A session of a coding agent: each call is asked about before, and told of after."""

    def __init__(self, stage: Stage, coder: Coder) -> None:
        self._stage = stage
        self._coder = coder
        self._calls = 0
        self._time = 0
        tree = WorkTree(stage.directory, environment={"PATH": "/usr/bin:/bin"}, without=(".batonpass",), watch=False)
        self._recorder = HookRecorder(
            stage.relay(),
            stage.directory,
            mode=stage.mode,
            by=PERSON,
            work_tree=tree,
            policy=DirectoryPolicy(stage.directory),
        )
        self._event("UserPromptSubmit", prompt="Do it", submitted_prompt="Do it")

    def call(self, act: Act) -> Told:
        """Let the model ask for a call."""
        tools = TOOLS[self._coder]
        about = self._about(tools.names[type(act)], tools.given(act))
        said = self._denied(self._event("PreToolUse", **about))
        if said is not None:
            return heard(said)
        done = self._stage.do(act)
        result = {"result_type": "success", "text_result_for_llm": str(done)} if self._coder is Coder.COPILOT else done
        self._event("PostToolUse", **about, tool_response=done, tool_result=result, tool_output=str(done))
        return MADE

    def hand_off(self, task: Delegate) -> Told:
        """Let the model start a sub-agent."""
        tool, words, kind = TOOLS[self._coder].delegate
        given = {words: task.task, **({} if kind is None else {kind: task.to})}
        said = self._denied(self._event("PreToolUse", **self._about(tool, given)))
        return MADE if said is None else heard(said)

    def close(self) -> None:
        """End the session."""
        self._event("SessionEnd", reason="other")
        self._recorder.close()

    def _about(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        self._calls += 1
        known = {"tool_name": tool, "tool_input": given, "tool_use_id": f"use_{self._calls}"}
        return {**known, "tool_call_id": f"call_{self._calls}"}

    def _denied(self, answer: Mapping[str, Any]) -> str | None:
        """Return the sentence of a denial in the agent's own form; None if the call may be made."""
        if self._coder is Coder.GEMINI:
            return str(answer["reason"]) if answer.get("decision") == "deny" else None
        if self._coder is Coder.CURSOR:
            return str(answer["agent_message"]) if answer.get("permission") == "deny" else None
        said = answer.get("hookSpecificOutput", {})
        return str(said["permissionDecisionReason"]) if said.get("permissionDecision") == "deny" else None

    def _event(self, name: str, **more: object) -> Mapping[str, Any]:
        self._time += 1
        theirs = {
            Coder.GEMINI: {"UserPromptSubmit": "BeforeAgent", "PreToolUse": "BeforeTool", "PostToolUse": "AfterTool"},
            Coder.CURSOR: {"UserPromptSubmit": "beforeSubmitPrompt", "PreToolUse": "preToolUse"},
        }.get(self._coder, {})
        event = {
            "hook_event_name": theirs.get(name, name),
            "session_id": SESSION,
            "conversation_id": SESSION,
            "timestamp": f"2026-11-17T20:00:{self._time}",
            "cwd": str(Path.cwd()),
            **more,
        }
        try:
            return self._recorder.handle(event, self._coder)
        except BatonpassError as error:
            self._recorder.note_gap(None, str(error), self._coder)
            asks = self._stage.enforced and name == "PreToolUse"
            return DIALECTS[self._coder].answer_denied(str(error)) if asks else {}


class OpenedCline(OpenedCoder):
    """A session of Cline: events with a form of their own, and no way to refuse one call."""

    def _event(self, name: str, **more: object) -> Mapping[str, Any]:
        self._time += 1
        kinds = {"UserPromptSubmit": "prompt_submit", "PreToolUse": "tool_call", "PostToolUse": "tool_result"}
        call = {"id": more.get("tool_use_id"), "name": more.get("tool_name"), "input": more.get("tool_input")}
        event: dict[str, Any] = {
            "hookName": kinds.get(name, "session_shutdown"),
            "taskId": SESSION,
            "sessionContext": {"rootSessionId": SESSION},
            "agent_id": "main",
            "parent_agent_id": None,
        }
        if name == "UserPromptSubmit":
            event["userPromptSubmit"] = {"prompt": more["prompt"]}
        elif name == "PreToolUse":
            event["tool_call"] = call
        elif name == "PostToolUse":
            event |= {"tool_result": {**call, "output": more.get("tool_response")}, "postToolUse": {"success": True}}
        try:
            return self._recorder.handle(event, self._coder)
        except BatonpassError as error:
            self._recorder.note_gap(None, str(error), self._coder)
            return {}


class CoderDoor(Door):
    """A session of a coding agent, its main conversation."""

    coder: ClassVar[Coder]
    listener = Listener.MODEL
    policy = '[mcp.bank]\ntargets = { pay = "to" }\n'
    cannot: ClassVar = {
        "a payment was named before the stranger's words came": "a grant names a server's tool, and not whom it pays",
        "several files": "no tool of this agent's own takes several files by name",
        "may": "a sub-agent gets all that its session may give",
        "rationale": "nobody says why a sub-agent is started",
        "constraints": "nobody says typed constraints to a session",
        "spelling: as an address": "the editor takes a path, and no address",
        "spelling: as an address of this machine": "the editor takes a path, and no address",
        "spelling: as an address with escapes": "the editor takes a path, and no address",
    }

    def tool(self, act: Act) -> str:
        """Return the tool's name."""
        return TOOLS[self.coder].names[type(act)]

    def pattern(self, act: Act) -> str:
        """Return a file by its path, and everything else by the tool."""
        match act:
            case Write(path=path):
                return f"write:{path}"
            case Read(path=path):
                return f"read:{path}"
            case Fetch():
                return f"call:{self.tool(act)}"
            case Pay():
                return "call:bank/pay"
            case WriteAll():
                raise NotImplementedError

    def open(self, stage: Stage) -> Opened:
        """Begin a session."""
        return (OpenedCline if self.coder is Coder.CLINE else OpenedCoder)(stage, self.coder)
