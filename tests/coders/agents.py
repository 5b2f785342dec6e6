"""The real programs: how each is started without a network, and what its model does in the story."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from batonpass.adapters.tool_kinds import Coder
from tests.coders.model import SUB_AGENT, Script, Step, Use

TASK: Final = "PARENT-TASK: edit things"
CHILD_TASK: Final = "CHILD-TASK: make alpha upper case"
OWN: Final = "sed -i s/beta/BETA/ b.txt"
CHILDS: Final = "sed -i s/alpha/ALPHA/ b.txt"
REFUSED: Final = "echo DENY-ME > denied.txt"


class Program(Struct, frozen=True, kw_only=True):
    """One agent: its settings for the scripted model, its command, its variables, and the model's steps."""

    coder: Coder
    command: Callable[[Path], Sequence[str]]
    settings: Callable[[Path, Path, str], Mapping[Path, str]]  # by home, project and the model's address
    variables: Callable[[str], Mapping[str, str]]
    steps: Callable[[Path], Sequence[Step]]
    childs: Callable[[Path], Sequence[Step]]
    refuses: bool = True  # takes a refusal of one call; else the story has none
    says: bool = True  # tells what its user said

    def script(self, project: Path) -> Script:
        """Return what the model does, for the main conversation and for its sub-agent."""
        return {
            "CHILD-TASK": [*self.childs(project), "child done"],
            "PARENT-TASK": [*self.steps(project), "parent done"],
        }


class KeptProgram(Struct, frozen=True, kw_only=True):
    """An agent without hooks that can be used: what it keeps on disk is read."""

    coder: Coder
    command: Callable[[Path], Sequence[str]]
    variables: Callable[[str], Mapping[str, str]]
    steps: Callable[[Path], Sequence[Step]]
    said: str = TASK


class ServerWords(Struct, frozen=True, kw_only=True):
    """How an agent's own command adds an MCP server, where it writes it, and how it says what it read there."""

    program: Callable[[Path], Sequence[str]]
    add: Sequence[str]
    tell: Sequence[str]
    place: str  # in the project, or in the person's home
    of_person: bool = False
    says: str = "mcp-proxy --from-init --name time"  # in what it tells


def _bin(name: str) -> Callable[[Path], list[str]]:
    return lambda place: [str(place / "node_modules" / ".bin" / name)]


def _json(**settings: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    return json.dumps(settings)


def _codex(home: Path, project: Path, model: str) -> dict[Path, str]:
    return {
        home / ".codex" / "config.toml": f"""
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
wire_api = "responses"
[projects."{project}"]
trust_level = "trusted"
"""
    }


def _opencode(home: Path, _: Path, model: str) -> dict[Path, str]:
    known = {"fake-model": {"name": "fake", "tool_call": True, "limit": {"context": 200000, "output": 8000}}}
    options = {"baseURL": f"{model}/v1", "apiKey": "x"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options, "models": known}
    text = _json(
        model="fake/fake-model",
        small_model="fake/fake-model",
        autoupdate=False,
        share="disabled",
        permission="allow",
        provider={"fake": provider},
    )
    return {home / ".config" / "opencode" / "opencode.json": text}


_QUIET: Final[dict[str, Any]] = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


def _gemini(home: Path, _: Path, __: str) -> dict[Path, str]:
    trust = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    text = _json(security=trust, general={"enableAutoUpdate": False}, experimental={"enableAgents": True}, **_QUIET)
    return {home / ".gemini" / "settings.json": text}


def _qwen(home: Path, _: Path, __: str) -> dict[Path, str]:
    trust = {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}}
    text = _json(security=trust, general={"disableAutoUpdate": True}, **_QUIET)
    return {home / ".qwen" / "settings.json": text}


def _cline(home: Path, _: Path, model: str) -> dict[Path, str]:
    name = "openai-compatible"
    settings = {"provider": name, "apiKey": "x", "model": "fake-model", "baseUrl": f"{model}/v1"}
    known = {name: {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}
    text = _json(version=1, lastUsedProvider=name, modes={}, providers=known)
    return {home / ".cline" / "data" / "settings" / "providers.json": text}


def _shell(tool: str, command: str, **more: object) -> Use:
    return Use(tool, {"command": command, "description": "x", **more})


def _copilot_command(place: Path) -> list[str]:
    return [str(place / "node_modules" / ".bin" / "copilot"), "--allow-all", "-p", TASK]


_PATCH: Final = "*** Begin Patch\n*** Update File: a.py\n@@\n def f():\n-    return 1\n+    return 2\n*** End Patch"
_GENERAL: Final = {"subagent_type": "general-purpose", "description": "kid", "prompt": CHILD_TASK}

PROGRAMS: Final[Mapping[Coder, Program]] = {
    Coder.CODEX: Program(
        coder=Coder.CODEX,
        # Trust is the user's to give, and asks for a terminal.
        command=lambda place: [*_bin("codex")(place), "exec", "--dangerously-bypass-hook-trust", TASK],
        settings=_codex,
        variables=lambda _: {},
        steps=lambda _: [
            Use("apply_patch", {}, text=_PATCH),
            Use("exec_command", {"cmd": OWN}),
            Use("exec_command", {"cmd": REFUSED}),
            Use("spawn_agent", {"message": CHILD_TASK}, "multi_agent_v1"),
            Use("wait_agent", {"targets": [SUB_AGENT], "timeout_ms": 10000}, "multi_agent_v1"),
        ],
        childs=lambda _: [Use("exec_command", {"cmd": CHILDS})],
    ),
    Coder.QWEN: Program(
        coder=Coder.QWEN,
        command=lambda place: [
            os.environ.get("BATONPASS_NODE", "node"),
            str(place / "node_modules/@qwen-code/qwen-code/cli-entry.js"),
            *("--yolo", "-o", "stream-json", "-p", TASK),
        ],
        settings=_qwen,
        variables=lambda model: {
            "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": f"{model}/v1",
            "OPENAI_MODEL": "fake-model",
        },
        steps=lambda project: [
            # It edits nothing that was not read, not even by a command.
            Use("read_file", {"file_path": str(project / "b.txt")}),
            Use("read_file", {"file_path": str(project / "a.py")}),
            Use("edit", {"file_path": str(project / "a.py"), "old_string": "return 1", "new_string": "return 2"}),
            _shell("run_shell_command", OWN, is_background=False),
            _shell("run_shell_command", REFUSED, is_background=False),
            Use("agent", _GENERAL),
        ],
        childs=lambda project: [
            Use("read_file", {"file_path": str(project / "b.txt")}),
            _shell("run_shell_command", CHILDS, is_background=False),
        ],
    ),
    Coder.GEMINI: Program(
        coder=Coder.GEMINI,
        command=lambda place: [*_bin("gemini")(place), "--yolo", "-m", "gemini-2.5-pro", "-p", TASK],
        settings=_gemini,
        variables=lambda model: {
            "GEMINI_API_KEY": "x",
            "GOOGLE_GEMINI_BASE_URL": model,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        steps=lambda project: [
            Use("read_file", {"file_path": "a.py"}),
            Use(
                "replace",
                {
                    "file_path": str(project / "a.py"),
                    "instruction": "return 2",
                    "old_string": "return 1",
                    "new_string": "return 2",
                },
            ),
            _shell("run_shell_command", OWN),
            _shell("run_shell_command", REFUSED),
            Use("invoke_agent", {"agent_name": "generalist", "prompt": CHILD_TASK}),
        ],
        childs=lambda _: [_shell("run_shell_command", CHILDS), Use("complete_task", {"result": "child done"})],
    ),
    Coder.OPENCODE: Program(
        coder=Coder.OPENCODE,
        command=lambda place: [*_bin("opencode")(place), "run", TASK],
        settings=_opencode,
        variables=lambda _: {},
        steps=lambda project: [
            Use("read", {"filePath": str(project / "a.py")}),
            Use("edit", {"filePath": str(project / "a.py"), "oldString": "return 1", "newString": "return 2"}),
            _shell("bash", OWN),
            _shell("bash", REFUSED),
            Use("task", {"subagent_type": "general", "description": "kid", "prompt": CHILD_TASK}),
        ],
        childs=lambda _: [_shell("bash", CHILDS)],
    ),
    Coder.CLINE: Program(
        coder=Coder.CLINE,
        command=lambda place: [*_bin("cline")(place), "--json", "-P", "openai-compatible", "-m", "fake-model", TASK],
        settings=_cline,
        variables=lambda _: {},
        steps=lambda project: [
            Use("editor", {"path": str(project / "a.py"), "old_text": "return 1", "new_text": "return 2"}),
            Use("run_commands", {"commands": [OWN]}),
            Use("spawn_agent", {"systemPrompt": "you are kid", "task": CHILD_TASK}),
        ],
        childs=lambda _: [Use("run_commands", {"commands": [CHILDS]})],
        refuses=False,
        says=False,
    ),
    Coder.COPILOT: Program(
        coder=Coder.COPILOT,
        command=_copilot_command,
        settings=lambda *_: {},
        variables=lambda model: {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{model}/v1",
            "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_MODEL": "fake-model",
            "COPILOT_ALLOW_ALL": "true",
        },
        steps=lambda project: [
            Use("edit", {"path": str(project / "a.py"), "old_str": "return 1", "new_str": "return 2"}),
            _shell("bash", OWN),
            _shell("bash", REFUSED),
            Use(
                "task",
                {
                    "agent_type": "general-purpose",
                    "name": "kid",
                    "description": "kid",
                    "prompt": CHILD_TASK,
                    "mode": "sync",
                },
            ),
        ],
        childs=lambda _: [_shell("bash", CHILDS)],
    ),
}


def _aider(place: Path) -> list[str]:
    quiet = ("--no-check-update", "--no-show-model-warnings", "--analytics-disable", "--no-stream", "--map-tokens", "0")
    asked = ("--model", "openai/fake-model", "--edit-format", "diff", "--yes-always", "--message", TASK, "a.py")
    return [str(place / "aider" / "bin" / "aider"), *quiet, *asked]


_REPLACED: Final = """Here it is.

a.py
```python
<<<<<<< SEARCH
    return 1
=======
    return 2
>>>>>>> REPLACE
```
"""

KEPT: Final[Mapping[Coder, KeptProgram]] = {
    Coder.AIDER: KeptProgram(
        coder=Coder.AIDER,
        command=_aider,
        variables=lambda model: {"OPENAI_API_BASE": f"{model}/v1", "OPENAI_API_KEY": "x"},
        steps=lambda _: [_REPLACED],
    ),
    Coder.GOOSE: KeptProgram(
        coder=Coder.GOOSE,
        command=lambda place: [*_bin("goose")(place), "run", "--with-builtin", "developer", "-t", TASK],
        variables=lambda model: {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "gpt-4o",
            "OPENAI_HOST": model,
            "OPENAI_API_KEY": "x",
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
        },
        steps=lambda project: [
            Use("edit", {"path": str(project / "a.py"), "before": "return 1", "after": "return 2"}),
            "parent done",
        ],
    ),
}

_SERVER: Final = ("--", "mcp-server-time", "--utc")


def _qwen_program(place: Path) -> list[str]:
    return list(PROGRAMS[Coder.QWEN].command(place)[:2])


SERVERS: Final[Mapping[Coder, ServerWords]] = {
    Coder.CODEX: ServerWords(
        program=_bin("codex"),
        add=("mcp", "add", "time", "--env", "TOKEN=x", *_SERVER),
        tell=("mcp", "get", "time"),
        place=".codex/config.toml",
        of_person=True,
    ),
    Coder.GEMINI: ServerWords(
        program=_bin("gemini"),
        add=("mcp", "add", "-e", "TOKEN=x", "time", "mcp-server-time", "--", "--utc"),
        tell=("mcp", "list"),
        place=".gemini/settings.json",
    ),
    Coder.QWEN: ServerWords(
        program=_qwen_program,
        add=("mcp", "add", "-s", "project", "-e", "TOKEN=x", "time", "mcp-server-time", "--", "--utc"),
        tell=("mcp", "list"),
        place=".qwen/settings.json",
    ),
    Coder.OPENCODE: ServerWords(
        program=_bin("opencode"),
        add=("mcp", "add", "time", "--env", "TOKEN=x", *_SERVER),
        tell=("mcp", "list"),
        place=".config/opencode/opencode.jsonc",
        of_person=True,
    ),
    # It lists nothing: that it finds the server to take it out is all that it says.
    Coder.CLINE: ServerWords(
        program=_bin("cline"),
        add=("mcp", "add", "--yes", "time", *_SERVER),
        tell=("mcp", "remove", "time"),
        place=".cline/data/settings/cline_mcp_settings.json",
        of_person=True,
        says="Uninstalled MCP server time",
    ),
}
