"""Adds our hooks to Claude Code's settings once, and removes them without a trace.

Outside of `hooks` a file keeps its bytes; inside, all other entries keep their order and fields.
"""

import copy
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from batonpass.adapters import jsonc
from batonpass.adapters.claude_code.transcripts.transcript_places import config_directory
from batonpass.adapters.coders import client
from batonpass.adapters.coders.events import EVENTS
from batonpass.adapters.settings_edit import Edit, read_settings
from batonpass.errors import InvalidValueError

PROGRAM: Final = "batonpass-hook"
TIMEOUT: Final = 10  # seconds; longer than the hook command itself waits, so that the command gives up first
_OURS: Final = re.compile(rf"(?<![\w-]){PROGRAM}(?![\w-])|batonpass/adapters/coders/client\.py")


class SettingsScope(StrEnum):
    """Whose settings: one user's in a project, everybody's in a project, or one user's in all projects."""

    LOCAL = "local"
    SHARED = "shared"
    USER = "user"


class Installed(Struct, frozen=True, kw_only=True):
    """Our hooks in a file: the first command, and whether a failure blocks a call."""

    path: Path
    command: str
    enforce: bool

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of the hook command."""
        try:
            words = shlex.split(self.command)
        except ValueError:
            return []
        return next((words[at + 1 :] for at, word in enumerate(words) if _OURS.search(word)), [])


def settings_path(scope: SettingsScope, project: Path) -> Path:
    """Return the settings file of a scope."""
    match scope:
        case SettingsScope.LOCAL:
            return project / ".claude" / "settings.local.json"
        case SettingsScope.SHARED:
            return project / ".claude" / "settings.json"
        case SettingsScope.USER:
            return config_directory() / "settings.json"


def hook_command(scope: SettingsScope, project: Path, *, ledger: str | None = None, enforce: bool = False) -> str:
    """Return the command that Claude Code runs for each event. A shared file contains no path of this machine."""
    words = [PROGRAM] if scope is SettingsScope.SHARED else [sys.executable, "-I", "-S", client.__file__]
    if scope is SettingsScope.LOCAL:
        words += ["--project", str(project)]
    if ledger is not None:
        words += ["--ledger", ledger]
    return shlex.join([*words, "--enforce"] if enforce else words)


def plan_install(path: Path, command: str, *, enforce: bool = False, within: Path | None = None) -> Edit:
    """Return the edit that adds our hooks to a file once, replacing older ones of ours.

    Raises `InvalidValueError` for a file that cannot be understood, or that a link leads out of `within`.
    """
    before, document = _load(path, within)
    hooks = copy.deepcopy(_hooks_of(path, document))
    for event in EVENTS:
        wanted = _entry(event, command, enforce=enforce)
        hooks[event] = _merged(hooks.get(event, []), wanted)
    for event in [name for name in hooks if name not in EVENTS]:
        _replace(hooks, event, _without(hooks[event]))
    return Edit(path=path, before=before, after=_written(before, document, hooks))


def plan_removal(path: Path, *, created: bool = False, within: Path | None = None) -> Edit:
    """Return the edit that removes our hooks; a file that we created is deleted if nothing else is in it."""
    before, document = _load(path, within)
    hooks = copy.deepcopy(_hooks_of(path, document))
    for event in list(hooks):
        _replace(hooks, event, _without(hooks[event]))
    if hooks == document.get("hooks", {}):
        return Edit(path=path, before=before, after=before)
    after: str | None = _written(before, document, hooks)
    if created and after is not None and json.loads(after) == {}:
        after = None
    return Edit(path=path, before=before, after=after)


def find_installed(project: Path) -> Iterator[tuple[SettingsScope, Installed]]:
    """Yield our hooks in all settings files that Claude Code reads for a project; unreadable files are skipped."""
    for scope in SettingsScope:
        path = settings_path(scope, project)
        try:
            _, document = _load(path, None)
            hooks = _hooks_of(path, document)
        except InvalidValueError:
            continue
        ours = [entry for groups in hooks.values() for entry in _entries(groups) if _is_ours(entry)]
        if ours:
            enforce = any(entry.get("onFailure") == "block" for entry in ours)
            yield scope, Installed(path=path, command=str(ours[0]["command"]), enforce=enforce)


def _entry(event: str, command: str, *, enforce: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "command", "command": command, "timeout": TIMEOUT}
    if enforce and event == "PreToolUse":
        # Without this, the call passes if the hook is missing, fails or takes too long.
        entry["onFailure"] = "block"
    return entry


def _merged(groups: list[Any], wanted: dict[str, Any]) -> list[Any]:
    """Return the groups of an event with our entry in a group of its own, at its old place if it had one."""
    alone = {"hooks": [wanted]}
    found: list[Any] = []
    placed = False
    for group in groups:
        if not any(map(_is_ours, _entries([group]))):
            found.append(group)
        elif all(map(_is_ours, _entries([group]))):
            found += [] if placed else [alone]
            placed = True
        else:
            found += _without([group])
    return found if placed else [*found, alone]


def _without(groups: list[Any]) -> list[Any]:
    found = []
    for group in groups:
        entries = _entries([group])
        left = [entry for entry in entries if not _is_ours(entry)]
        if left or not entries:
            found.append(group if len(left) == len(entries) else {**group, "hooks": left})
    return found


def _replace(hooks: dict[str, Any], event: str, left: list[Any]) -> None:
    if left or not hooks[event]:
        hooks[event] = left
    else:
        del hooks[event]


def _entries(groups: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for group in groups:
        inner = group.get("hooks") if isinstance(group, dict) else None
        found += inner if isinstance(inner, list) else []
    return found


def _is_ours(entry: object) -> bool:
    command = entry.get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _load(path: Path, within: Path | None) -> tuple[str | None, dict[str, Any]]:
    real = path.resolve()
    if within is not None and not real.is_relative_to(within.resolve()):
        raise InvalidValueError(str(path), f"is a link to {real}, outside the project; edit that file by hand")
    text = read_settings(real)
    if text is None or not text.strip():
        return text, {}
    try:
        document = json.loads(text)
        jsonc.read(text)  # refuses duplicate keys
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(str(path), f"is not valid JSON: {error}; correct it first") from None
    if not isinstance(document, dict):
        raise InvalidValueError(str(path), "is not a JSON object; correct it first")
    return text, document


def _hooks_of(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise InvalidValueError(f"{path}: hooks", "does not have the form that Claude Code expects; correct it first")
    return hooks


def _written(before: str | None, document: Mapping[str, Any], hooks: dict[str, Any]) -> str:
    """Return the text with other hooks; everything else keeps its bytes."""
    indent, newline = jsonc.layout_of(before or "")
    if before is None or not before.strip():
        return json.dumps({"hooks": hooks}, indent=indent, ensure_ascii=False) + "\n"
    if hooks == document.get("hooks", {}):
        return before
    value = json.dumps(hooks, indent=indent, ensure_ascii=False).replace("\n", f"\n{indent}")
    root = jsonc.read(before)
    if (node := root.find("hooks")) is not None:
        return before[: node.start] + value.replace("\n", newline) + before[node.end :] if hooks else _cut(before, root)
    last = max((member.end for member in root.members.values()), default=root.start + 1)
    inserted = f'{"," if root.members else ""}\n{indent}"hooks": {value}'.replace("\n", newline)
    rest = before[last:]
    return before[:last] + inserted + (rest if rest.startswith(("\n", "\r")) else newline + rest.lstrip())


def _cut(text: str, root: jsonc.Node) -> str:
    """Return the text without the member `hooks` and one comma."""
    names = list(root.members)
    number, end = names.index("hooks"), root.members["hooks"].end
    before = root.members[names[number - 1]].end if number else None
    if number + 1 < len(names):
        begins = root.start + 1 if before is None else text.index(",", before) + 1
        return text[:begins] + text[text.index(",", end) + 1 :]
    return text[: root.start + 1] + text[end:].lstrip() if before is None else text[:before] + text[end:]
