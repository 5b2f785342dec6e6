"""The tools of coding agents: one table, on which reading, recording, rules and grants depend.

A tool is known by its agent and its name. A tool that is not in the table may do anything, and is treated so.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Coder(StrEnum):
    """A coding agent, by the name that receipts, rules and commands use."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    COPILOT = "copilot"
    QWEN = "qwen"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    CURSOR = "cursor"
    DROID = "droid"
    CLINE = "cline"
    GOOSE = "goose"
    AIDER = "aider"


class ToolKind(StrEnum):
    """The kind of a tool, by its effect."""

    SHELL = "shell"  # runs a command
    WRITER = "writer"  # edits files that it names
    READER = "reader"  # reads one file
    SEARCHER = "searcher"  # searches for files, or in them
    DELEGATE = "delegate"  # starts a sub-agent
    LISTENER = "listener"  # returns the output of a background task so far
    ENDER = "ender"  # ends a background task
    WEB = "web"  # returns something from outside
    QUIET = "quiet"  # changes nothing that outlives the session


class ToolAccess(StrEnum):
    """The access of a tool to the files and programs of this machine."""

    READ = "read"
    WRITE = "write"
    RUN = "run"


class ToolForm(Struct, frozen=True, kw_only=True):
    """The kind of a tool, and the meaning of its arguments."""

    kind: ToolKind
    leading: str | None = None  # a rule about this tool of Claude Code applies to it too
    file: str | None = None  # the only argument that names its file; a similar argument next to it is a decoy
    command: str | None = None  # the argument with its command
    patch: str | None = None  # the argument with a patch of several files, in the form of `apply_patch`
    task: str | None = None  # the argument with the task of a sub-agent
    sub_agent: str | None = None  # the argument with its type
    url: str | None = None
    searches: bool = False  # reads the files below a directory, not only their names
    more: tuple[str, ...] = ()  # further arguments that name something

    @property
    def access(self) -> ToolAccess | None:
        """Return whether it reads, writes or runs; None if it does none of these by itself."""
        match self.kind:
            case ToolKind.SHELL:
                return ToolAccess.RUN
            case ToolKind.WRITER:
                return ToolAccess.WRITE
            case ToolKind.READER | ToolKind.SEARCHER:
                return ToolAccess.READ
            case _:
                return None

    @property
    def is_reading(self) -> bool:
        """Return whether it changes nothing. A shell may do anything."""
        return self.kind in _HARMLESS

    @property
    def naming(self) -> tuple[str, ...]:
        """Return the arguments that name something; all others are text."""
        named = (self.file, self.command, self.patch, *self.more)
        return tuple(name for name in named if name is not None)


_HARMLESS: Final = frozenset(
    {ToolKind.READER, ToolKind.SEARCHER, ToolKind.LISTENER, ToolKind.WEB, ToolKind.QUIET},
)
_PATHS: Final = ("file_path", "notebook_path", "path")


def _shell(command: str = "command") -> ToolForm:
    return ToolForm(kind=ToolKind.SHELL, leading="Bash", command=command)


def _writer(file: str) -> ToolForm:
    return ToolForm(kind=ToolKind.WRITER, leading="Edit", file=file)


def _patcher(patch: str) -> ToolForm:
    return ToolForm(kind=ToolKind.WRITER, leading="Edit", patch=patch)


def _reader(file: str) -> ToolForm:
    return ToolForm(kind=ToolKind.READER, leading="Read", file=file)


def _finder(file: str, *more: str) -> ToolForm:
    return ToolForm(kind=ToolKind.SEARCHER, leading="Glob", file=file, more=more)


def _searcher(file: str, *more: str) -> ToolForm:
    return ToolForm(kind=ToolKind.SEARCHER, leading="Grep", file=file, searches=True, more=more)


def _delegate(task: str, sub_agent: str | None = None) -> ToolForm:
    return ToolForm(kind=ToolKind.DELEGATE, leading="Agent", task=task, sub_agent=sub_agent)


def _fetcher(url: str) -> ToolForm:
    return ToolForm(kind=ToolKind.WEB, leading="WebFetch", url=url)


_WEB_SEARCH: Final = ToolForm(kind=ToolKind.WEB, leading="WebSearch")
_LISTENER: Final = ToolForm(kind=ToolKind.LISTENER)
_ENDER: Final = ToolForm(kind=ToolKind.ENDER)
_QUIET: Final = ToolForm(kind=ToolKind.QUIET)


# Rules have always named each reader and searcher of Claude Code itself, so these have no leading name. A rule about
# Edit is about every tool that edits files.
_CLAUDE_CODE: Final[Mapping[str, ToolForm]] = {
    **dict.fromkeys(("Bash", "Monitor", "PowerShell"), _shell()),
    **dict.fromkeys(
        ("Edit", "MultiEdit", "Update", "Write"),
        ToolForm(kind=ToolKind.WRITER, leading="Edit", file="file_path", more=_PATHS),
    ),
    "NotebookEdit": ToolForm(kind=ToolKind.WRITER, leading="Edit", file="notebook_path", more=_PATHS),
    "Read": ToolForm(kind=ToolKind.READER, file="file_path", more=_PATHS),
    "NotebookRead": ToolForm(kind=ToolKind.READER, file="notebook_path", more=_PATHS),
    "Glob": ToolForm(kind=ToolKind.SEARCHER, file="path", more=(*_PATHS, "pattern")),
    "Grep": ToolForm(kind=ToolKind.SEARCHER, file="path", more=(*_PATHS, "glob"), searches=True),
    "LS": ToolForm(kind=ToolKind.SEARCHER, file="path", more=_PATHS),
    **dict.fromkeys(("Agent", "Task"), ToolForm(kind=ToolKind.DELEGATE, task="prompt", sub_agent="subagent_type")),
    **dict.fromkeys(("AgentOutput", "BashOutput", "TaskOutput"), _LISTENER),
    **dict.fromkeys(("KillBash", "KillShell", "TaskStop"), _ENDER),
    "WebFetch": ToolForm(kind=ToolKind.WEB, url="url"),
    "WebSearch": ToolForm(kind=ToolKind.WEB),
    **dict.fromkeys(("AskUserQuestion", "ExitPlanMode", "ListAgents", "TodoRead", "TodoWrite", "ToolSearch"), _QUIET),
}
_CODEX_SPAWN: Final = _delegate("message", "agent_type")

TOOLS: Final[Mapping[str, Mapping[str, ToolForm]]] = {
    Coder.CLAUDE_CODE: _CLAUDE_CODE,
    Coder.CODEX: {
        **dict.fromkeys(("Bash", "shell", "shell_command", "local_shell"), _shell()),
        "exec_command": _shell("cmd"),
        "write_stdin": _shell("chars"),
        "apply_patch": _patcher("command"),
        "view_image": _reader("path"),
        "read_file": _reader("file_path"),
        "list_dir": _finder("dir_path"),
        "grep_files": _searcher("path", "include"),
        "spawn_agent": _CODEX_SPAWN,
        **dict.fromkeys(("wait", "wait_agent"), _LISTENER),
        "close_agent": _ENDER,
        "web_search": _WEB_SEARCH,
        **dict.fromkeys(("list_agents", "request_user_input", "update_plan"), _QUIET),
    },
    Coder.COPILOT: {
        **dict.fromkeys(("bash", "powershell"), _shell()),
        **dict.fromkeys(("write_bash", "write_powershell"), _shell("input")),
        **dict.fromkeys(("create", "edit", "str_replace_editor"), _writer("path")),
        "apply_patch": _patcher("input"),
        "view": _reader("path"),
        "glob": _finder("path", "pattern"),
        **dict.fromkeys(("grep", "rg"), _searcher("path", "glob")),
        "task": _delegate("prompt", "agent_type"),
        **dict.fromkeys(("read_agent", "read_bash", "read_powershell"), _LISTENER),
        **dict.fromkeys(("stop_bash", "stop_powershell"), _ENDER),
        "web_fetch": _fetcher("url"),
        "web_search": _WEB_SEARCH,
        **dict.fromkeys(
            (
                "ask_user",
                "exit_plan_mode",
                "list_agents",
                "list_bash",
                "list_powershell",
                "report_intent",
                "update_todo",
            ),
            _QUIET,
        ),
    },
    Coder.QWEN: {
        **dict.fromkeys(("monitor", "run_shell_command"), _shell()),
        **dict.fromkeys(("edit", "write_file"), _writer("file_path")),
        "notebook_edit": _writer("notebook_path"),
        "read_file": _reader("file_path"),
        "glob": _finder("path", "pattern"),
        "list_directory": _finder("path"),
        "grep_search": _searcher("path", "glob"),
        **dict.fromkeys(("agent", "task"), _delegate("prompt", "subagent_type")),
        "task_stop": _ENDER,
        "web_fetch": _fetcher("url"),
        "web_search": _WEB_SEARCH,
        **dict.fromkeys(("ask_user_question", "exit_plan_mode", "todo_write", "tool_search"), _QUIET),
    },
    Coder.GEMINI: {
        "run_shell_command": _shell(),
        **dict.fromkeys(("replace", "write_file"), _writer("file_path")),
        "read_file": _reader("file_path"),
        "glob": _finder("dir_path", "pattern"),
        "list_directory": _finder("dir_path"),
        **dict.fromkeys(("grep_search", "search_file_content"), _searcher("dir_path", "include")),
        "invoke_agent": _delegate("prompt", "agent_name"),
        "read_background_output": _LISTENER,
        "web_fetch": ToolForm(kind=ToolKind.WEB, leading="WebFetch"),  # its addresses are words in a prompt
        "google_web_search": _WEB_SEARCH,
        **dict.fromkeys(
            ("ask_user", "complete_task", "enter_plan_mode", "exit_plan_mode", "update_topic", "write_todos"), _QUIET
        ),
    },
    Coder.OPENCODE: {
        "bash": _shell(),
        **dict.fromkeys(("edit", "multiedit", "write"), _writer("filePath")),
        **dict.fromkeys(("apply_patch", "patch"), _patcher("patchText")),
        "read": _reader("filePath"),
        "glob": _finder("path", "pattern"),
        "list": _finder("path"),
        "grep": _searcher("path", "include"),
        "task": _delegate("prompt", "subagent_type"),
        "webfetch": _fetcher("url"),
        **dict.fromkeys(("codesearch", "websearch"), _WEB_SEARCH),
        **dict.fromkeys(("plan_enter", "plan_exit", "question", "skill", "todoread", "todowrite"), _QUIET),
    },
    Coder.CURSOR: {
        "Shell": _shell(),
        **dict.fromkeys(("Delete", "Edit", "StrReplace", "Write"), _writer("file_path")),
        "EditNotebook": _writer("target_notebook"),
        "Read": _reader("file_path"),
        "Glob": _finder("target_directory", "glob_pattern"),
        "LS": _finder("target_directory"),
        "Grep": _searcher("path", "glob"),
        "Task": _delegate("task", "subagent_type"),
        "WebFetch": _fetcher("url"),
        "WebSearch": _WEB_SEARCH,
        **dict.fromkeys(("AskQuestion", "TodoWrite"), _QUIET),
    },
    Coder.DROID: {
        "Execute": _shell(),
        **dict.fromkeys(("Create", "Edit", "MultiEdit"), _writer("file_path")),
        "ApplyPatch": _patcher("input"),
        "Read": _reader("file_path"),
        "Glob": _finder("folder", "patterns"),
        "LS": _finder("directory_path"),
        "Grep": _searcher("path", "glob_pattern"),
        "Task": _delegate("prompt", "subagent_type"),
        "TaskOutput": _LISTENER,
        "KillProcess": _ENDER,
        "FetchUrl": _fetcher("url"),
        "WebSearch": _WEB_SEARCH,
        **dict.fromkeys(("AskUser", "ExitSpecMode", "TodoWrite"), _QUIET),
    },
    Coder.CLINE: {
        "run_commands": _shell("commands"),
        "editor": _writer("path"),
        "apply_patch": _patcher("input"),
        "read_files": ToolForm(kind=ToolKind.READER, leading="Read", more=("files", "paths")),
        "search_codebase": ToolForm(kind=ToolKind.SEARCHER, leading="Grep", searches=True, more=("path", "queries")),
        "spawn_agent": _delegate("task"),
        "fetch_web_content": ToolForm(kind=ToolKind.WEB, leading="WebFetch", more=("requests", "url")),
        **dict.fromkeys(("ask_question", "submit_and_exit"), _QUIET),
    },
    Coder.GOOSE: {
        **dict.fromkeys(("developer__shell", "shell"), _shell()),
        **dict.fromkeys(("developer__text_editor", "edit", "text_editor", "write"), _writer("path")),
        "tree": _finder("path"),
        **dict.fromkeys(("delegate", "subagent"), _delegate("instructions")),
        **dict.fromkeys(("todo__todo_write", "todo_write"), _QUIET),
    },
    Coder.AIDER: {},
}

_CODERS: Final = frozenset(Coder)
# Codex puts the name of a family of tools in front, without anything between.
_FAMILIES: Final = ("collaboration", "multi_agent_v1", "multi_agent_v2")


def as_coder(name: str) -> Coder:
    """Return the agent with a name; Claude Code for any other name, and for none."""
    return Coder(name) if name in _CODERS else Coder.CLAUDE_CODE


def find_form(coder: str, tool: str) -> ToolForm | None:
    """Return the known form of an agent's tool; None if it is unknown and may do anything."""
    form = TOOLS[coder].get(tool)  # one look-up: this runs many times for each event
    if form is None and coder == Coder.CODEX and tool.startswith(_FAMILIES):
        family = next(one for one in _FAMILIES if tool.startswith(one))
        return TOOLS[coder].get(tool.removeprefix(family).lstrip("._"))
    return form


KINDS: Final[Mapping[str, ToolKind]] = {name: form.kind for name, form in _CLAUDE_CODE.items()}  # of Claude Code


def tools_of(*kinds: ToolKind) -> frozenset[str]:
    """Return the tools of Claude Code of some kinds."""
    return frozenset(name for name, kind in KINDS.items() if kind in kinds)


DELEGATES: Final = tools_of(ToolKind.DELEGATE)
# Only the results of these report a change of a file; any other tool could return the same fields.
EDITORS: Final = tools_of(ToolKind.WRITER)
_MCP: Final = "mcp__"


def leading_name(coder: str, tool: str) -> str | None:
    """Return the other name that rules use for a tool; None if there is none."""
    form = find_form(coder, tool)
    return None if form is None or form.leading == tool else form.leading


def is_reading(coder: str, tool: str) -> bool:
    """Return whether a tool changes nothing."""
    form = find_form(coder, tool)
    return form is not None and form.is_reading


def is_external(coder: str, tool: str) -> bool:
    """Return whether the result of a tool comes from outside: the web, or an MCP server."""
    form = find_form(coder, tool)
    return tool.startswith(_MCP) or (form is not None and form.kind is ToolKind.WEB)
