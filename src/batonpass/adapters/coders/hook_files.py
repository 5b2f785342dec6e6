"""The settings files in which agents look for hooks: where they are, their form, and what their users must trust."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.adapters.claude_code.transcripts.transcript_places import config_directory
from batonpass.adapters.tool_kinds import Coder
from batonpass.errors import InvalidValueError


class SettingsScope(StrEnum):
    """Whose settings: one user's in a project, everybody's in a project, or one user's in all projects."""

    LOCAL = "local"
    SHARED = "shared"
    USER = "user"


class HookForm(StrEnum):
    """The form of hooks in a file."""

    GROUPS = "groups"  # an event has groups, each with a matcher and commands
    FLAT = "flat"  # an event has commands
    PLUGIN = "plugin"  # a program in the agent's own language
    SCRIPTS = "scripts"  # one executable for each event


class HookFile(Struct, frozen=True, kw_only=True):
    """Where an agent looks for hooks, and how they are written there."""

    form: HookForm
    project: str  # relative to the project
    local: str | None = None  # another file for one user's own, if the agent has one
    user: str | None = None  # relative to the directory of the user's own settings; None: it has none
    home: str = ""  # that directory, relative to the home
    home_variable: str = ""  # the variable that moves it
    command: str = "command"  # the key of the command
    timeout: str = "timeout"
    matcher: str | None = None  # the matcher that means every tool; None: none is needed
    version: int | None = None  # of a file that we create
    comments: bool = False  # the agent takes JSON with comments
    program: str = ""  # its command, by which people start it
    traces: tuple[str, ...] = ()  # in a project, or in a home: it is used
    trust: str | None = None  # what the user must do before the agent runs hooks


HOOK_FILES: Final[Mapping[Coder, HookFile]] = {
    Coder.CLAUDE_CODE: HookFile(
        form=HookForm.GROUPS,
        project=".claude/settings.json",
        local=".claude/settings.local.json",
        user="settings.json",
        program="claude",
        traces=(".claude",),
    ),
    Coder.CODEX: HookFile(
        form=HookForm.GROUPS,
        project=".codex/hooks.json",
        user="hooks.json",
        home=".codex",
        home_variable="CODEX_HOME",
        program="codex",
        traces=(".codex",),
        trust=(
            "Codex runs them after you trusted them: start `codex` here once and accept, or say /hooks; "
            "`codex exec` skips hooks that are not trusted without a word"
        ),
    ),
    Coder.COPILOT: HookFile(
        form=HookForm.FLAT,
        project=".github/hooks/batonpass.json",
        home=".copilot",
        home_variable="COPILOT_HOME",
        command="bash",
        timeout="timeoutSec",
        version=1,
        program="copilot",
        traces=(".copilot", ".github/hooks"),
        trust="Copilot CLI runs them in folders that you trust: start `copilot` here once and say yes",
    ),
    Coder.QWEN: HookFile(
        form=HookForm.GROUPS,
        project=".qwen/settings.json",
        user="settings.json",
        home=".qwen",
        matcher="*",
        comments=True,
        program="qwen",
        traces=(".qwen",),
        trust="Qwen Code runs them in folders that you trust, if you switched folder trust on: /trust",
    ),
    Coder.GEMINI: HookFile(
        form=HookForm.GROUPS,
        project=".gemini/settings.json",
        user="settings.json",
        home=".gemini",
        matcher="*",
        comments=True,
        program="gemini",
        traces=(".gemini",),
        trust="Gemini CLI runs them in folders that you trust: start `gemini` here once, and say yes",
    ),
    Coder.OPENCODE: HookFile(
        form=HookForm.PLUGIN,
        project=".opencode/plugin/batonpass.js",
        user="plugin/batonpass.js",
        home=".config/opencode",
        program="opencode",
        traces=(".opencode", "opencode.json", "opencode.jsonc", ".config/opencode"),
    ),
    Coder.CURSOR: HookFile(
        form=HookForm.FLAT,
        project=".cursor/hooks.json",
        user="hooks.json",
        home=".cursor",
        version=1,
        program="cursor",
        traces=(".cursor",),
        trust="Cursor runs the hooks of a project in workspaces that you trust",
    ),
    Coder.DROID: HookFile(
        form=HookForm.GROUPS,
        project=".factory/settings.json",
        user="settings.json",
        home=".factory",
        matcher="*",
        program="droid",
        traces=(".factory",),
    ),
    Coder.CLINE: HookFile(
        form=HookForm.SCRIPTS,
        project=".cline/hooks",
        program="cline",
        traces=(".cline", ".clinerules"),
    ),
}


def settings_path(scope: SettingsScope, project: Path, coder: Coder = Coder.CLAUDE_CODE) -> Path:
    """Return the settings file of a scope; for scripts, their folder.

    Raises `InvalidValueError` if the agent has none for that scope.
    """
    file = HOOK_FILES[coder]
    match scope:
        case SettingsScope.LOCAL:
            return project / (file.local or file.project)
        case SettingsScope.SHARED:
            return project / file.project
        case SettingsScope.USER:
            if file.user is None:
                raise InvalidValueError("scope", f"{coder} has no settings for all projects")
            return user_directory(coder) / file.user


def user_directory(coder: Coder, environment: Mapping[str, str] | None = None) -> Path:
    """Return the directory of the user's own settings of an agent."""
    if coder is Coder.CLAUDE_CODE:
        return config_directory(environment)
    file = HOOK_FILES[coder]
    given = (os.environ if environment is None else environment).get(file.home_variable) if file.home_variable else None
    return Path(given) if given else Path.home() / file.home
