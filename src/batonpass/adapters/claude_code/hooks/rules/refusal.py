"""Applies the rules for agents to a call: which tools a type of agent may use, and on what."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from batonpass.adapters.claude_code.hooks.events import HookEvent
from batonpass.adapters.claude_code.hooks.rules.agent_rules import Rules, ToolPattern
from batonpass.adapters.claude_code.tool_kinds import DELEGATES, SHELLS
from batonpass.guard.policy.name_patterns import glob
from batonpass.handoff.shell.command_reach import scripts_in
from batonpass.handoff.shell.command_text import LONGEST
from batonpass.handoff.shell.find_expression import FindExpression
from batonpass.handoff.shell.nested_programs import base_name, program_run_by, programs_of, spellings_of
from batonpass.policy.file_place import FILE_NAME

_PATHS: Final = ("file_path", "notebook_path", "path")


class Refusal(Struct, frozen=True):
    """Why a call must not be made: the rule, and a sentence that the model can act on."""

    rule: str
    sentence: str


def find_refusal(event: HookEvent, rules: Rules, project: Path, kind: str | None = None) -> Refusal | None:
    """Return the refusal of a call by the rules for its agent; None if they allow it.

    `kind` is the type of sub-agent that was offered the work; without it, the event says which it is.
    """
    return _Call(event, project, kind).exceeds(rules)


class _Call:
    def __init__(self, event: HookEvent, project: Path, kind: str | None) -> None:
        self._tool = event.tool
        self._input = event.input
        self._base = str(event.directory or project)
        self._agent = (kind or event.agent_type or "") if event.agent is not None else None
        self._project = str(project)

    def exceeds(self, rules: Rules) -> Refusal | None:
        """Return the refusal of a call that exceeds the rules."""
        limits = rules.limits_of(self._agent)
        who = "the main conversation" if self._agent is None else f"sub-agents of type {self._agent!r}"
        for pattern in limits.deny:
            if self._is_denied_by(pattern):
                return Refusal("claude-code.denied", f"{FILE_NAME} denies {pattern.text!r} to {who}")
        if limits.allow is None and not rules.denies_by_default:
            return None
        allowed = limits.allow or ()
        if self._is_allowed_by(allowed):
            return None
        may = ", ".join(pattern.text for pattern in allowed) or "nothing"
        return Refusal("claude-code.not-allowed", f"{FILE_NAME} allows {who} only: {may}")

    def _is_denied_by(self, pattern: ToolPattern) -> bool:
        if not pattern.covers(self._tool):
            return False
        if pattern.of is None:
            return True
        if self._tool in SHELLS:
            text = str(self._input.get("command", ""))
            # A command that is too long to be parsed may run anything.
            spelled = (text, *_run_by(text, self._base))
            return len(text) > LONGEST or any(_is_command(pattern.of, one) for one in spelled)
        return any(self._is_at(pattern.of, blind=True))

    def _is_allowed_by(self, patterns: tuple[ToolPattern, ...]) -> bool:
        covering = [pattern for pattern in patterns if pattern.covers(self._tool)]
        if any(pattern.of is None for pattern in covering):
            return True
        wanted = [pattern.of for pattern in covering if pattern.of is not None]
        if self._tool in SHELLS:
            commands = [one for one in scripts_in(str(self._input.get("command", "")), (self._base,)) if one.words]
            return bool(commands) and all(_is_allowed(wanted, each.words) for each in commands)
        return any(found and all(found) for found in ([*self._is_at(one)] for one in wanted))

    def _is_at(self, pattern: str, *, blind: bool = False) -> Iterator[bool]:
        """Yield for each spelling of the call's target whether a pattern matches it."""
        if self._tool in DELEGATES:
            yield glob(pattern).fullmatch(str(self._input.get("subagent_type", ""))) is not None
        elif self._tool == "WebFetch":
            host = _host(str(self._input.get("url", "")))
            wanted = pattern.removeprefix("domain:").lower()
            yield host == wanted or host.endswith(f".{wanted}")
        else:
            project = self._project
            roots = {os.path.normpath(project), os.path.realpath(project)}
            for path in (given for name in _PATHS if isinstance(given := self._input.get(name), str)):
                for spelled in _resolved(path, self._base):
                    yield any(
                        glob(_absolute(pattern, root), blind=blind).fullmatch(spelled) is not None for root in roots
                    )


def _resolved(path: str, base: str) -> Iterator[str]:
    """Yield where a path leads: without `.` and `..`, and after every symbolic link."""
    if "\0" in path:
        return
    whole = os.path.join(base, os.path.expanduser(path))  # noqa: PTH111, PTH118 - pathlib would normalise the path
    yield os.path.normpath(whole)
    yield os.path.realpath(whole)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _run_by(text: str, base: str) -> Iterator[str]:
    """Yield every program that a command may run, in each spelling that a rule may use."""
    for command in scripts_in(text, (base,)):
        for words in programs_of(command.words):
            yield from spellings_of(words)


def _is_allowed(patterns: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether a command is allowed as written, together with every program that it runs in turn."""
    if not words or not any(_is_command(pattern, " ".join(words)) for pattern in patterns):
        return False
    inner = program_run_by(words)
    found = FindExpression(words[1:]).programs if base_name(words[0]) == "find" else []
    return all(_is_allowed(patterns, each) for each in (*found, *(() if inner is None else (inner,))))


def _is_command(pattern: str, text: str) -> bool:
    # `git:*` is Claude Code's older notation for a prefix.
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
        return os.path.expanduser(pattern)  # noqa: PTH111 - a pattern is not a path
    return f"{root}/{pattern.removeprefix('./').removeprefix('/')}"
