"""Adds our hooks to the settings of a coding agent once, and removes them without a trace.

Outside of `hooks` a file keeps its bytes; inside, all other entries keep their order and fields.
"""

import copy
import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from batonpass.adapters import jsonc
from batonpass.adapters.coders import client
from batonpass.adapters.coders.dialects.table import DIALECTS
from batonpass.adapters.coders.hook_files import HOOK_FILES, HookFile, HookForm, SettingsScope, settings_path
from batonpass.adapters.coders.hook_programs import plugin_text, script_text
from batonpass.adapters.settings_edit import Edit, read_settings
from batonpass.adapters.tool_kinds import Coder
from batonpass.errors import InvalidValueError

PROGRAM: Final = "batonpass-hook"
TIMEOUT: Final = 10  # seconds; longer than the hook command itself waits, so that the command gives up first
_OURS: Final = re.compile(
    rf"(?<![\w-]){PROGRAM}(?![\w-])|batonpass/adapters/(?:coders|claude_code/hooks)/client\.py",
)
_ASKING: Final = frozenset({"PreToolUse", "preToolUse"})


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


def hook_command(
    scope: SettingsScope,
    project: Path,
    *,
    ledger: str | None = None,
    enforce: bool = False,
    coder: Coder = Coder.CLAUDE_CODE,
) -> str:
    """Return the command that an agent runs for each event. A shared file contains no path of this machine."""
    words = [PROGRAM] if scope is SettingsScope.SHARED else [sys.executable, "-I", "-S", client.__file__]
    if coder is not Coder.CLAUDE_CODE:
        words += ["--agent", coder]
    if scope is SettingsScope.LOCAL:
        words += ["--project", str(project)]
    if ledger is not None:
        words += ["--ledger", ledger]
    return shlex.join([*words, "--enforce"] if enforce else words)


def plan_hooks(
    coder: Coder, path: Path, command: str, *, enforce: bool = False, within: Path | None = None
) -> list[Edit]:
    """Return the edits that add our hooks to an agent's settings in its form. Raises as `plan_install` does."""
    match HOOK_FILES[coder].form:
        case HookForm.PLUGIN:
            return [_own_file(path, plugin_text(command, enforce=enforce), within)]
        case HookForm.SCRIPTS:
            text = script_text(command)
            return [_own_file(path / f"{event}.py", text, within) for event in DIALECTS[coder].events]
        case _:
            return [plan_install(path, command, enforce=enforce, within=within, coder=coder)]


def plan_hooks_removal(
    coder: Coder, path: Path, *, created: Callable[[Path], bool], within: Path | None = None
) -> list[Edit]:
    """Return the edits that remove our hooks; files that are only ours are deleted."""
    match HOOK_FILES[coder].form:
        case HookForm.PLUGIN:
            paths = [path]
        case HookForm.SCRIPTS:
            paths = [path / f"{event}.py" for event in DIALECTS[coder].events]
        case _:
            return [plan_removal(path, created=created(path), within=within, coder=coder)]
    texts = [(one, read_settings(one)) for one in paths]
    return [
        Edit(path=one, before=text, after=None if text is not None and _OURS.search(text) else text)
        for one, text in texts
    ]


def _own_file(path: Path, text: str, within: Path | None) -> Edit:
    _refuse_outside(path, within)
    before = read_settings(path)
    if before is not None and _OURS.search(before) is None:
        raise InvalidValueError(str(path), "is not ours, and would be overwritten; move it away first")
    return Edit(path=path, before=before, after=text, executable=path.suffix == ".py")


def plan_install(
    path: Path,
    command: str,
    *,
    enforce: bool = False,
    within: Path | None = None,
    coder: Coder = Coder.CLAUDE_CODE,
) -> Edit:
    """Return the edit that adds our hooks to a file once, replacing older ones of ours.

    Raises `InvalidValueError` for a file that cannot be understood, or that a link leads out of `within`.
    """
    file, events = HOOK_FILES[coder], DIALECTS[coder].events
    before, document = _load(path, within, file)
    hooks = copy.deepcopy(_hooks_of(path, document, coder))
    for event in events:
        wanted = _entry(event, command, coder, enforce=enforce)
        present = hooks.get(event, [])
        hooks[event] = _merged_flat(present, wanted) if file.form is HookForm.FLAT else _merged(present, wanted, file)
    for event in [name for name in hooks if name not in events]:
        _replace(hooks, event, _without(hooks[event]))
    return Edit(path=path, before=before, after=_written(before, document, hooks, file))


def plan_removal(
    path: Path, *, created: bool = False, within: Path | None = None, coder: Coder = Coder.CLAUDE_CODE
) -> Edit:
    """Return the edit that removes our hooks; a file that we created is deleted if nothing else is in it."""
    file = HOOK_FILES[coder]
    before, document = _load(path, within, file)
    hooks = copy.deepcopy(_hooks_of(path, document, coder))
    for event in list(hooks):
        _replace(hooks, event, _without(hooks[event]))
    if hooks == document.get("hooks", {}):
        return Edit(path=path, before=before, after=before)
    after: str | None = _written(before, document, hooks, file)
    if created and after is not None and json.loads(after) in ({}, _empty(file)):
        after = None
    return Edit(path=path, before=before, after=after)


def is_our_command(command: str) -> bool:
    """Return whether a command is our hook command."""
    return _OURS.search(command) is not None


def find_installed(project: Path, coder: Coder = Coder.CLAUDE_CODE) -> Iterator[tuple[SettingsScope, Installed]]:
    """Yield our hooks in all settings files that an agent reads for a project; unreadable files are skipped."""
    seen: set[Path] = set()
    for scope in SettingsScope:
        if scope is SettingsScope.USER and HOOK_FILES[coder].user is None:
            continue
        path = settings_path(scope, project, coder)
        if path in seen:
            continue
        seen.add(path)
        if (found := _find_ours(path, coder)) is not None:
            shared = "--project" not in found.arguments and scope is SettingsScope.LOCAL
            yield SettingsScope.SHARED if shared else scope, found


def _find_ours(path: Path, coder: Coder) -> Installed | None:
    file = HOOK_FILES[coder]
    if file.form in {HookForm.PLUGIN, HookForm.SCRIPTS}:
        own = path if file.form is HookForm.PLUGIN else path / "PreToolUse.py"
        return _find_program(own, path)
    try:
        _, document = _load(path, None, file)
        hooks = _hooks_of(path, document, coder)
    except InvalidValueError:
        return None
    ours = [entry for groups in hooks.values() for entry in _entries(groups) if _is_ours(entry)]
    if not ours:
        return None
    command = str(ours[0].get(file.command))
    enforce = "--enforce" in command or any(entry.get("onFailure") == "block" for entry in ours)
    return Installed(path=path, command=command, enforce=enforce)


def _find_program(own: Path, path: Path) -> Installed | None:
    try:
        text = read_settings(own) or ""
    except InvalidValueError:
        return None
    found = _COMMAND.search(text)
    if found is None or _OURS.search(text) is None:
        return None
    command = str(json.loads(found[1]))
    return Installed(path=path, command=command, enforce="--enforce" in command)


# The line with the command in the programs that we write.
_COMMAND: Final = re.compile(r'^(?:const )?COMMAND = (".*")$', re.MULTILINE)


def _entry(event: str, command: str, coder: Coder, *, enforce: bool) -> dict[str, Any]:
    file = HOOK_FILES[coder]
    entry: dict[str, Any] = {} if coder is Coder.CURSOR else {"type": "command"}
    entry |= {file.command: command, file.timeout: TIMEOUT * DIALECTS[coder].second}
    if enforce and event in _ASKING:
        # Without this, the call passes if the hook is missing, fails or takes too long.
        if coder is Coder.CLAUDE_CODE:
            entry["onFailure"] = "block"
        elif coder is Coder.CURSOR:
            entry["failClosed"] = True
    return entry


def _merged(groups: list[Any], wanted: dict[str, Any], file: HookFile) -> list[Any]:
    """Return the groups of an event with our entry in a group of its own, at its old place if it had one."""
    alone = {"hooks": [wanted]} if file.matcher is None else {"matcher": file.matcher, "hooks": [wanted]}
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


def _merged_flat(entries: list[Any], wanted: dict[str, Any]) -> list[Any]:
    """Return the entries of an event with ours once, at its old place if it had one."""
    at = next((number for number, entry in enumerate(entries) if _is_ours(entry)), None)
    left = [entry for entry in entries if not _is_ours(entry)]
    if at is None:
        return [*left, wanted]
    before = sum(not _is_ours(entry) for entry in entries[:at])
    return [*left[:before], wanted, *left[before:]]


def _without(groups: list[Any]) -> list[Any]:
    found = []
    for group in groups:
        if _is_ours(group):
            continue
        entries = _entries([group]) if isinstance(group, dict) and "hooks" in group else []
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
        found += inner if isinstance(inner, list) else [group]
    return found


def _is_ours(entry: object) -> bool:
    if not isinstance(entry, dict) or "hooks" in entry:
        return False
    commands = (entry.get(key) for key in ("command", "bash"))
    return any(isinstance(command, str) and _OURS.search(command) is not None for command in commands)


def _refuse_outside(path: Path, within: Path | None) -> None:
    real = path.resolve()
    if within is not None and not real.is_relative_to(within.resolve()):
        raise InvalidValueError(str(path), f"is a link to {real}, outside the project; edit that file by hand")


def _load(path: Path, within: Path | None, file: HookFile) -> tuple[str | None, dict[str, Any]]:
    _refuse_outside(path, within)
    text = read_settings(path.resolve())
    if text is None or not text.strip():
        return text, {}
    try:
        root = jsonc.read(text)  # refuses duplicate keys
        document = root.value if file.comments else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(str(path), f"is not valid JSON: {error}; correct it first") from None
    if not isinstance(document, dict):
        raise InvalidValueError(str(path), "is not a JSON object; correct it first")
    node = root.find("hooks")
    if file.comments and node is not None and _has_comments(text[node.start : node.end]):
        raise InvalidValueError(str(path), "has comments inside of `hooks`, which would be lost; edit it by hand")
    return text, document


def _has_comments(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def _empty(file: HookFile) -> dict[str, Any]:
    return {} if file.version is None else {"version": file.version}


def _hooks_of(path: Path, document: Mapping[str, Any], coder: Coder) -> dict[str, Any]:
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise InvalidValueError(
            f"{path}: hooks", f"does not have the form that {DIALECTS[coder].title} expects; correct it first"
        )
    return hooks


def _written(before: str | None, document: Mapping[str, Any], hooks: dict[str, Any], file: HookFile) -> str:
    """Return the text with other hooks; everything else keeps its bytes."""
    indent, newline = jsonc.layout_of(before or "")
    if before is None or not before.strip():
        return json.dumps({**_empty(file), "hooks": hooks}, indent=indent, ensure_ascii=False) + "\n"
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
