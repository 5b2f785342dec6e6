"""May this call be made? In an enforced session, before each one: what is protected, then the rules for its agent.

In a session that is only observed, nothing is refused but tampering with the record itself. In an enforced one,
everybody is kept from the ledger, the hook settings, the rules and Batonpass itself; which other tools a sub-agent may
use stands in `batonpass.toml`. What a shell is told is read as text, see `shell`: a net and not a wall.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from batonpass.adapters.claude_code.hooks.protecting import PROGRAMS, Places, resolved
from batonpass.adapters.claude_code.hooks.rules import (
    DELEGATES,
    SHELLS,
    Pattern,
    Rules,
    read_rules,
)
from batonpass.adapters.claude_code.hooks.running import DESTROYERS, Process, Refusal, refuse_place, refuse_text
from batonpass.adapters.claude_code.hooks.shell import Command, read_commands
from batonpass.errors import InvalidValueError
from batonpass.guard.patterns import glob
from batonpass.policy.document import FILE_NAME

_PATHS: Final = ("file_path", "notebook_path", "path")
_TEXTS: Final = ("command", "cmd", "script")
_READERS: Final = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read"})
_LONGEST_PATH: Final = 4096
_ELSE: Final = "Do it in another way that is allowed, or tell the user what you could not do."


class Judge:
    """Answers for one project. The rules are read again when their file changes."""

    def __init__(self, project: Path, *, home: Path, ledger: Path | None = None) -> None:
        package = Path(__file__).resolve().parents[3]
        beside = (Path(sys.executable).with_name(name) for name in PROGRAMS)
        self._places = Places(project, home=home, ledger=ledger, program=(package, *beside))
        self._process = Process(os.getpid(), tuple(sys.orig_argv))
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
        return judge(event, rules, self._places, self._process)

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
    """Answers for one project that is only observed: whatever changes the ledger behind our back is refused."""

    def __init__(self, project: Path, *, home: Path, ledger: Path | None = None) -> None:
        self._places = Places(project, home=home, ledger=ledger)

    def __call__(self, event: Mapping[str, Any]) -> Refusal | None:
        """Return why the call in an event would tamper with the record; None if it would not."""
        return _Call(event, self._places, None).tampers()


def judge(event: Mapping[str, Any], rules: Rules, places: Places, process: Process | None = None) -> Refusal | None:
    """Return why the call in a PreToolUse event must not be made; None if it may."""
    call = _Call(event, places, process)
    return call.touches() or call.exceeds(rules)


class _Call:
    def __init__(self, event: Mapping[str, Any], places: Places, process: Process | None) -> None:
        given = event.get("tool_input")
        self._tool = str(event.get("tool_name"))
        self._input: Mapping[str, Any] = given if isinstance(given, dict) else {}
        self._base = str(event.get("cwd") or places.project)
        self._agent = str(event.get("agent_type") or "") if event.get("agent_id") is not None else None
        self._places = places
        self._process = process

    def touches(self) -> Refusal | None:
        """Return the refusal of what nobody may do."""
        for path in self._paths():
            if place := self._places.find(path, self._base, reads=self._tool in _READERS):
                return refuse_place(place)
        for name in _TEXTS:
            if isinstance(text := self._input.get(name), str):
                found = refuse_text(text, base=self._base, places=self._places, process=self._process)
                if found is not None:
                    return found
        return None

    def tampers(self) -> Refusal | None:
        """Return the refusal of what changes or removes the ledger; reading it, and all else, is let through."""
        if self._tool in _READERS:
            return None
        found = [self._places.find(path, self._base) for path in self._paths()]
        found += [
            self._places.find_word(word, [self._base], destroys=True)
            for name in _TEXTS
            if isinstance(text := self._input.get(name), str)
            for command in read_commands(text)
            if command.program in DESTROYERS
            for word in command.words[1:]
        ]
        return next((refuse_place(place) for place in found if place is not None and place.secret), None)

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

    def _paths(self) -> Iterator[str]:
        yield from (path for name in _PATHS if isinstance(path := self._input.get(name), str))
        if self._tool.startswith("mcp__"):
            # Which of its strings is a path, only the server knows.
            yield from _strings(self._input)

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
            project = str(self._places.project)
            roots = {os.path.normpath(project), os.path.realpath(project)}
            for path in (given for name in _PATHS if isinstance(given := self._input.get(name), str)):
                for spelled in resolved(path, self._base):
                    yield any(
                        glob(_absolute(pattern, root), blind=blind).fullmatch(spelled) is not None for root in roots
                    )


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) <= _LONGEST_PATH:
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


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
