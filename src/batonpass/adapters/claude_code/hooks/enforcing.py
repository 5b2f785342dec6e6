"""May this call be made? In an enforced session, before each one: what is protected, then the rules for its agent.

What is protected is the same at every door, and decided in `batonpass.handoff.calls.call_reach`: here is only said
what the arguments of Claude Code's tools are. Which other tools a sub-agent may use stands in `batonpass.toml`.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from batonpass.adapters.claude_code.hooks.rules import (
    DELEGATES,
    FILES,
    SHELLS,
    Pattern,
    Rules,
    read_rules,
)
from batonpass.adapters.claude_code.telling import as_agent, is_reading
from batonpass.errors import CallProtectedError, InvalidValueError
from batonpass.guard.patterns import glob
from batonpass.handoff.calls.call_reach import find_touched
from batonpass.handoff.calls.foreign import ForeignCall
from batonpass.handoff.calls.protected_paths import RUNS, Process, Protected, program_files
from batonpass.handoff.calls.shell_text import Command, read_commands
from batonpass.handoff.calls.tools import Declared
from batonpass.policy.document import FILE_NAME
from batonpass.store.opening import SQLITE

_PATHS: Final = ("file_path", "notebook_path", "path")
_COMMAND: Final = "command"
# What each tool of Claude Code's own takes besides paths is text; of other tools nobody knows.
_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(FILES, _PATHS),
    "Glob": (*_PATHS, "pattern"),
    "Grep": (*_PATHS, "glob"),
    "LS": _PATHS,
    **dict.fromkeys(SHELLS, (_COMMAND,)),
    **dict.fromkeys(
        (
            *DELEGATES,
            "AskUserQuestion",
            "BashOutput",
            "ExitPlanMode",
            "KillShell",
            "TodoWrite",
            "ToolSearch",
            "WebFetch",
            "WebSearch",
        ),
        (),
    ),
}
_ELSE: Final = "Do it in another way that is allowed, or tell the user what you could not do."


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call must not be made: the rule, and a sentence that the model can act on."""

    rule: str
    sentence: str


def declare(tool: str, given: Mapping[str, Any], place: str) -> Declared:
    """Return what is known of a tool of Claude Code's: where it works, and which of its arguments are only text."""
    named_by = _NAMED_BY.get(tool)
    content = () if named_by is None else tuple(name for name in given if name and name not in named_by)
    scripts = (_COMMAND,) if tool in SHELLS else ()
    reads = tool in _NAMED_BY and is_reading(tool)
    return Declared(name=as_agent(tool), reads=reads, place=place, content=content, scripts=scripts)


def protected_in(project: Path, *, home: Path, ledger: Path | None = None) -> Protected:
    """Return what is protected in a project, this process included: it is the one that records."""
    url = "" if ledger is None else f"{SQLITE}{ledger}"
    process = Process(os.getpid(), tuple(sys.orig_argv))
    return Protected.around(home, url, project, program=program_files(), process=process)


class Judge:
    """Answers for one project. The rules are read again when their file changes."""

    def __init__(self, project: Path, *, home: Path, ledger: Path | None = None) -> None:
        self._protected = protected_in(project, home=home, ledger=ledger)
        self._file = project / FILE_NAME
        self._rules: tuple[object, Rules | InvalidValueError] | None = None

    def __call__(self, event: Mapping[str, Any]) -> Refusal | None:
        """Return why the call in an event must not be made; None if it may."""
        rules = self._current()
        if isinstance(rules, InvalidValueError):
            return Refusal(
                "claude-code.rules",
                f"No call can be judged, because {FILE_NAME} is wrong: {rules}. Ask the user to correct it.",
            )
        return judge(event, rules, self._protected)

    def _current(self) -> Rules | InvalidValueError:
        try:
            found = self._file.stat()
            stamp: object = (found.st_ino, found.st_size, found.st_mtime_ns)
        except OSError as error:
            stamp = error.errno
        if self._rules is None or self._rules[0] != stamp:
            try:
                self._rules = (stamp, read_rules(self._file))
            except InvalidValueError as error:
                self._rules = (stamp, error)
        return self._rules[1]


class Keeper:
    """Answers for one project that is only observed: whatever changes the ledger or reads its keys is refused."""

    def __init__(self, project: Path, *, home: Path, ledger: Path | None = None) -> None:
        self._protected = protected_in(project, home=home, ledger=ledger)

    def __call__(self, event: Mapping[str, Any]) -> Refusal | None:
        """Return why the call in an event would tamper with the record; None if it would not."""
        return _Call(event, self._protected).touches(enforced=False)


def judge(event: Mapping[str, Any], rules: Rules, protected: Protected) -> Refusal | None:
    """Return why the call in a PreToolUse event must not be made; None if it may."""
    call = _Call(event, protected)
    return call.touches(enforced=True) or call.exceeds(rules)


class _Call:
    def __init__(self, event: Mapping[str, Any], protected: Protected) -> None:
        given = event.get("tool_input")
        self._tool = str(event.get("tool_name"))
        self._input: Mapping[str, Any] = given if isinstance(given, dict) else {}
        self._base = str(event.get("cwd") or protected.work_tree)
        self._agent = str(event.get("agent_type") or "") if event.get("agent_id") is not None else None
        self._protected = protected

    def touches(self, *, enforced: bool) -> Refusal | None:
        """Return the refusal of what nobody may do."""
        declared = declare(self._tool, self._input, self._base)
        call = ForeignCall(declared, dict, (), self._input)
        found = find_touched(self._protected, call, enforced=enforced)
        if found is None:
            return None
        rule = "claude-code.batonpass" if found.what == RUNS else "claude-code.protected"
        return Refusal(rule, str(CallProtectedError(declared.name, found.does, found.instead)))

    def exceeds(self, rules: Rules) -> Refusal | None:
        """Return the refusal of what the rules for this agent do not let it do."""
        limits = rules.limits_of(self._agent)
        who = "the main conversation" if self._agent is None else f"sub-agents of type {self._agent!r}"
        for pattern in limits.deny:
            if self._is_denied_by(pattern):
                return Refusal(
                    "claude-code.denied", f"The rule {pattern.text!r} in {FILE_NAME} denies this to {who}. {_ELSE}"
                )
        if limits.allow is None and not rules.denies_by_default:
            return None
        allowed = limits.allow or ()
        if self._is_allowed_by(allowed):
            return None
        may = ", ".join(pattern.text for pattern in allowed) or "nothing"
        return Refusal("claude-code.not-allowed", f"{FILE_NAME} allows {who} only: {may}. {_ELSE}")

    def _is_denied_by(self, pattern: Pattern) -> bool:
        if not pattern.covers(self._tool):
            return False
        if pattern.of is None:
            return True
        if self._tool in SHELLS:
            text = str(self._input.get("command", ""))
            return any(_is_command(pattern.of, one) for one in (text, *map(_joined, read_commands(text))))
        return any(self._is_at(pattern.of, blind=True))

    def _is_allowed_by(self, patterns: tuple[Pattern, ...]) -> bool:
        covering = [pattern for pattern in patterns if pattern.covers(self._tool)]
        if any(pattern.of is None for pattern in covering):
            return True
        wanted = [pattern.of for pattern in covering if pattern.of is not None]
        if self._tool in SHELLS:
            commands = [one for one in read_commands(str(self._input.get("command", ""))) if one.words]
            return bool(commands) and all(any(_is_command(one, _joined(each)) for one in wanted) for each in commands)
        return any(found and all(found) for found in ([*self._is_at(one)] for one in wanted))

    def _is_at(self, pattern: str, *, blind: bool = False) -> Iterator[bool]:
        """Yield for each way to spell what the call is used on whether a pattern has it."""
        if self._tool in DELEGATES:
            yield glob(pattern).fullmatch(str(self._input.get("subagent_type", ""))) is not None
        elif self._tool == "WebFetch":
            host = _host(str(self._input.get("url", "")))
            wanted = pattern.removeprefix("domain:").lower()
            yield host == wanted or host.endswith(f".{wanted}")
        else:
            project = self._protected.work_tree
            roots = {os.path.normpath(project), os.path.realpath(project)}
            for path in (given for name in _PATHS if isinstance(given := self._input.get(name), str)):
                for spelled in _resolved(path, self._base):
                    yield any(
                        glob(_absolute(pattern, root), blind=blind).fullmatch(spelled) is not None for root in roots
                    )


def _resolved(path: str, base: str) -> Iterator[str]:
    """Yield where a path leads: as it is written, without `.` and `..`, and after every symbolic link."""
    if "\0" in path:
        return
    whole = os.path.join(base, os.path.expanduser(path))  # noqa: PTH111, PTH118 - pathlib would drop what we look for
    yield os.path.normpath(whole)
    yield os.path.realpath(whole)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _joined(command: Command) -> str:
    return " ".join(command.words)


def _is_command(pattern: str, text: str) -> bool:
    # Claude Code's older spelling of "begins with": `git:*`.
    begins = pattern.removesuffix(":*") if pattern.endswith(":*") else None
    if begins is None and pattern.endswith(" *"):
        begins = pattern.removesuffix(" *")
    if begins is not None:
        return glob(begins, across=True).fullmatch(text) is not None or (
            glob(f"{begins} *", across=True).fullmatch(text) is not None
        )
    return glob(pattern, across=True).fullmatch(text) is not None


def _absolute(pattern: str, root: str) -> str:
    if pattern.startswith("//"):
        return pattern[1:]
    if pattern.startswith("~/"):
        return os.path.expanduser(pattern)  # noqa: PTH111 - a pattern is no path
    return f"{root}/{pattern.removeprefix('./').removeprefix('/')}"
