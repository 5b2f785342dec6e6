"""What a call of Claude Code's tools does to what, as a grant names it.

Files are read and written by their path; a command that is one program is run, by that program's name; a tool of an MCP
server is called as behind the proxy; whatever else there is, is called by its name.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from batonpass.adapters.claude_code.hooks.events import Event
from batonpass.adapters.claude_code.hooks.rules import SHELLS, WRITERS
from batonpass.adapters.claude_code.telling import as_agent, is_reading
from batonpass.handoff.calls.foreign import ForeignCall, find_mcp
from batonpass.handoff.calls.tools import CALL, READ, WRITE, Declared

RUN: Final = "run"

_READERS: Final = frozenset({"NotebookRead", "Read"})
_SEARCHERS: Final = frozenset({"Glob", "Grep", "LS"})
_PATHS: Final = ("file_path", "notebook_path", "path")
# No shell would make more of these than words: nothing is substituted, joined, sent elsewhere or left out.
_WORD: Final = r"(?:[\w@%+=:,./*?\[\]~{}^-]|'[^']*'|\"[^\"$`\\!]*\")+"
# What stands in quotes is that; of the rest, a shell may make other words, and so other files, of these.
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_EXPANDED: Final = re.compile(r"[*?\[\]{}~^]|\s=")
_SIMPLE: Final = re.compile(rf"\s*[\w@%+,./-]+(?:[ \t]+{_WORD})*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class HookedCall(ForeignCall):
    """A call that a hook is asked about. What is protected was looked for in it before, from where it is made."""

    @property
    def path(self) -> str | None:
        """Return nothing, as relative paths in it begin elsewhere."""
        return None

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return nothing, for the same reason."""
        return {}


def meaning_of(event: Event, project: Path) -> HookedCall:
    """Return a call as a grant sees it."""
    arguments = _placed(event, project)
    does, to, on_disk = _done(event, arguments, project)
    place = str(event.directory or project)
    declared = Declared(name=as_agent(event.tool), reads=is_reading(event.tool), place=place)
    return HookedCall(declared, dict, (), arguments, does, to, on_disk, local=find_mcp(event.tool) is None)


def _done(event: Event, arguments: Mapping[str, Any], project: Path) -> tuple[str, str, bool]:
    path = next((arguments[name] for name in _PATHS if isinstance(arguments.get(name), str)), None)
    if path and event.tool in WRITERS:
        return WRITE, path, True
    # All of the work tree has no name in it, so a search through all of it is a right of its own.
    if path and (event.tool in _READERS or (event.tool in _SEARCHERS and not _is_same(path, project))):
        return READ, path, True
    if event.tool in SHELLS and (words := _words(arguments.get("command"))):
        program = words[0]
        # A name is looked for on the PATH. What has a slash in it is that very file, and is named from the root on:
        # `make` in the work tree, which an agent may have written, is not the program of that name.
        return RUN, os.path.realpath(_at(program, event, project)) if "/" in program else program, False
    return CALL, find_mcp(event.tool) or as_agent(event.tool), False


def _placed(event: Event, project: Path) -> dict[str, Any]:
    """Return the arguments with their paths seen from the root, as the recorder stands elsewhere, and words apart."""
    placed = {
        name: _at(value, event, project) if name in _PATHS and isinstance(value, str) and value else value
        for name, value in event.input.items()
    }
    if find_mcp(event.tool) is not None:
        return dict(event.input)
    if event.tool in SHELLS and (words := _words(command := event.input.get("command"))):
        placed.pop("arguments", None)
        if _EXPANDED.search(_QUOTED.sub("", str(command))) is None:
            placed["arguments"] = words[1:]
    return placed


def _words(command: object) -> list[str]:
    """Return the words of a command that is one program with arguments; none if it is anything more."""
    if not isinstance(command, str) or _SIMPLE.fullmatch(command) is None:
        return []
    return shlex.split(command)


def _at(path: str, event: Event, project: Path) -> str:
    return os.path.join(event.directory or project, os.path.expanduser(path))  # noqa: PTH111, PTH118 - `..` stays in it


def _is_same(path: str, project: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(project)
