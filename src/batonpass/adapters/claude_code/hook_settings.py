"""Our hooks in Claude Code's settings: put in once, taken out without a trace, and nothing else touched.

Outside of `hooks` a file keeps its bytes; inside, everybody else's entries keep their order and their fields.
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

from batonpass.adapters.claude_code.hooks import client
from batonpass.adapters.claude_code.hooks.events import EVENTS
from batonpass.adapters.claude_code.transcripts.transcript_places import config_directory
from batonpass.adapters.settings_edit import Edit, read_settings
from batonpass.errors import InvalidValueError

PROGRAM: Final = "batonpass-hook"
TIMEOUT: Final = 10  # seconds: more than the hook command itself waits, so that it is the one who gives up
_OURS: Final = re.compile(rf"(?<![\w-]){PROGRAM}(?![\w-])|batonpass/adapters/claude_code/hooks/client\.py")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_BLANK: Final = re.compile(r"[ \t\r\n]*")


class SettingsScope(StrEnum):
    """Whose settings: one person's in one project, everybody's in it, or one person's in all projects."""

    LOCAL = "local"
    SHARED = "shared"
    USER = "user"


class Installed(Struct, frozen=True, kw_only=True):
    """Our hooks as they stand in a file: the first command of ours, and whether a failure blocks a call."""

    path: Path
    command: str
    enforce: bool

    @property
    def arguments(self) -> list[str]:
        """Return what the hook command is told."""
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
    """Return what Claude Code is to run for each event. A shared file holds no path of this machine."""
    words = [PROGRAM] if scope is SettingsScope.SHARED else [sys.executable, "-I", "-S", client.__file__]
    if scope is SettingsScope.LOCAL:
        words += ["--project", str(project)]
    if ledger is not None:
        words += ["--ledger", ledger]
    return shlex.join([*words, "--enforce"] if enforce else words)


def plan_install(path: Path, command: str, *, enforce: bool = False, within: Path | None = None) -> Edit:
    """Return the edit after which our hooks are in a file, once, in place of any older ones of ours.

    Raises `InvalidValueError` for a file that we do not understand, or that a link leads out of `within`.
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
    """Return the edit after which nothing of ours is in a file; one that we created goes, if nothing else is in it."""
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
    """Yield our hooks in all the files that Claude Code reads in a project. What cannot be read is passed over."""
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
        # Without this, a hook that is missing, ends with another code or takes too long lets the call pass.
        entry["onFailure"] = "block"
    return entry


def _merged(groups: list[Any], wanted: dict[str, Any]) -> list[Any]:
    """Return the groups of an event with our entry in a group of its own, where it stood if it did."""
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
        raise InvalidValueError(str(path), f"leads to {real}, out of the project; edit that file by hand")
    text = read_settings(real)
    if text is None or not text.strip():
        return text, {}
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(str(path), f"is not JSON that can be edited: {error}; correct it first") from None
    if not isinstance(document, dict):
        raise InvalidValueError(str(path), "holds no object; correct it first")
    return text, document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _hooks_of(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise InvalidValueError(f"{path}: hooks", "is not as Claude Code has it; correct it first")
    return hooks


def _written(before: str | None, document: Mapping[str, Any], hooks: dict[str, Any]) -> str:
    """Return the text with other hooks in it; what is not about hooks keeps its bytes."""
    found = _INDENT.search(before or "")
    indent = found[1] if found else "  "
    if before is None or not before.strip():
        return json.dumps({"hooks": hooks}, indent=indent, ensure_ascii=False) + "\n"
    newline = "\r\n" if "\r\n" in before else "\n"
    if hooks == document.get("hooks", {}):
        return before
    value = json.dumps(hooks, indent=indent, ensure_ascii=False).replace("\n", f"\n{indent}")
    members = _members(before)
    spans = {name: span for name, *span in members}
    if "hooks" in spans:
        _, start, end = spans["hooks"]
        if hooks:
            return before[:start] + value.replace("\n", newline) + before[end:]
        return _cut(before, members)
    last = members[-1][3] if members else before.index("{") + 1
    comma = "," if members else ""
    inserted = f'{comma}\n{indent}"hooks": {value}'.replace("\n", newline)
    rest = before[last:]
    return before[:last] + inserted + (rest if rest.startswith(("\n", "\r")) else newline + rest.lstrip())


def _members(text: str) -> list[tuple[str, int, int, int]]:
    """Return for each member of the object in a text its name, where that begins, and where its value does and ends."""
    decoder, found = json.JSONDecoder(), []
    at = _skip(text, text.index("{") + 1)
    while text[at] != "}":
        begins = at
        name, at = decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = decoder.raw_decode(text, start)
        found.append((name, begins, start, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return found


def _cut(text: str, members: list[tuple[str, int, int, int]]) -> str:
    number = next(number for number, member in enumerate(members) if member[0] == "hooks")
    _, begins, _, end = members[number]
    if number + 1 < len(members):
        return text[:begins] + text[members[number + 1][1] :]
    if number:
        return text[: members[number - 1][3]] + text[end:]
    return text[: text.index("{") + 1] + text[end:].lstrip()


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()
