"""Translates calls of Claude Code's tools into actions and resources of a grant.

Files are read and written by path; a command that is one program is run by its name; a tool of an MCP server is called
as behind the proxy; any other tool is called by its name.
"""

import dataclasses
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import structs

from batonpass.adapters.claude_code.hooks.events import HookEvent
from batonpass.adapters.claude_code.tool_kinds import (
    DELEGATES,
    FILES,
    SHELLS,
    ToolKind,
    file_argument,
    is_external,
    is_reading,
    leading_name,
    tools_of,
)
from batonpass.adapters.importer.receipt_words import describe_arguments
from batonpass.adapters.mcp.server_declaration import Hints, Server, name_for
from batonpass.adapters.session_files.session_place import relative_path
from batonpass.guard.policy.call_patterns import Used, UsedOn
from batonpass.guard.policy.gates import DoorFacts, GateDecision
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import ForeignCall, find_mcp, split_mcp
from batonpass.handoff.tools.json_values import readable
from batonpass.model.base.ids import AgentId, as_agent
from batonpass.model.policy.policy_rules import DoorName

RUN: Final = "run"
_PATHS: Final = ("file_path", "notebook_path", "path")
_COMMAND: Final = "command"
# The arguments of Claude Code's tools that name something; all others are text. Of other tools nothing is known.
_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(FILES, _PATHS),
    "Glob": (*_PATHS, "pattern"),
    "Grep": (*_PATHS, "glob"),
    "LS": _PATHS,
    **dict.fromkeys(SHELLS, (_COMMAND,)),
    **dict.fromkeys(
        (
            *DELEGATES,
            *tools_of(ToolKind.LISTENER, ToolKind.ENDER),
            "AskUserQuestion",
            "ExitPlanMode",
            "TodoWrite",
            "ToolSearch",
            "WebFetch",
            "WebSearch",
        ),
        (),
    ),
}

_WRITERS: Final = tools_of(ToolKind.WRITER)
_READERS: Final = tools_of(ToolKind.READER)
_SEARCHERS: Final = tools_of(ToolKind.SEARCHER)
_GREP: Final = "Grep"
# Words that a shell passes on unchanged: no substitution, pipe, redirection or comment.
_WORD: Final = r"(?:[\w@%+=:,./*?\[\]~{}^-]|'[^']*'|\"[^\"$`\\!]*\")+"
# Outside of quotes a shell may expand these into other words, and so into other files.
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_EXPANDED: Final = re.compile(r"[*?\[\]{}~^]|\s=")
_SIMPLE: Final = re.compile(rf"\s*[\w@%+,./-]+(?:[ \t]+{_WORD})*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class HookedCall(ForeignCall):
    """A call that a hook asks about, in the form that all doors use."""

    event: HookEvent = field(default_factory=lambda: HookEvent(name="", session=""))
    file: str | None = None  # the file that it edits, relative to the project
    project: Path = Path()
    refusal: GateDecision | None = None  # of every call, because there are no rules that could be applied
    agent: AgentId | None = None  # the type of sub-agent, if its run does not tell it

    @property
    def described(self) -> bytes:
        """Return the tool and its arguments as the model wrote them."""
        return describe_arguments(self.event.tool, self.event.input)

    @property
    def target(self) -> str | None:
        """Return the file that it edits."""
        return self.file

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return the arguments as the model wrote them; relative paths start at the call's directory."""
        return self.event.input

    @property
    def seen_elsewhere(self) -> bool:
        """Return True: the call runs in another process, and the hooks look at its changes themselves."""
        return True

    def find_refusals(self) -> tuple[GateDecision, ...]:
        """Return the refusal of every call while the file with the rules is invalid."""
        return () if self.refusal is None else (self.refusal,)

    @property
    def told_by_door(self) -> DoorFacts:
        """Return who makes the call, and what it is used on."""
        return DoorFacts(door=DoorName.CLAUDE_CODE, agent=self.agent, used=_used(self.event, self.project))


def call_of(
    event: HookEvent,
    project: Path,
    servers: Mapping[str, Server],
    *,
    refusal: GateDecision | None = None,
    kind: str | None = None,
) -> HookedCall:
    """Return a call in the form that all doors use. `kind` is the type of sub-agent that was offered the work."""
    arguments = _placed(event, project)
    does, to, on_disk = _done(event, arguments, project)
    declared = _declared(event, str(event.directory or project), servers)
    said = None if declared.target is None else declared.target(arguments)
    changed = said if event.path is None else relative_path(event.path, project)
    file = None if changed is None else readable(changed)
    return HookedCall(
        dataclasses.replace(declared, target=None),
        dict,
        (),
        arguments,
        does,
        to,
        on_disk,
        local=find_mcp(event.tool) is None,
        event=event,
        file=file,
        project=project,
        refusal=refusal,
        agent=None if event.agent is None or kind is not None or not event.agent_type else as_agent(event.agent_type),
    )


def _declared(event: HookEvent, place: str, servers: Mapping[str, Server]) -> Declared:
    """Return the declaration of a tool: Claude Code's own by name, a server's from the file."""
    tool = event.tool
    if (named := split_mcp(tool)) is not None:
        server = servers.get(named[0], Server(name=name_for(named[0])))
        return dataclasses.replace(server.declare(named[1], Hints()), name=as_agent(tool), place=place)
    named_by = _NAMED_BY.get(tool)
    return Declared(
        name=as_agent(tool),
        reads=is_reading(tool),
        content=() if named_by is None else tuple(name for name in event.input if name and name not in named_by),
        scripts=(_COMMAND,) if tool in SHELLS else (),
        # The receipt contains the text before an edit, so an edit can be undone.
        reversible=True if tool in _WRITERS else None,
        external=is_external(tool),
        any_file=tool in SHELLS,
        place=place,
        searches=tool == _GREP,  # Glob and LS return names only
        kin=_kin_of(tool),
    )


def _kin_of(tool: str) -> tuple[str, ...]:
    """Return the other names by which rules include a tool: all that run commands or edit files by the name of one."""
    if tool in DELEGATES:
        return tuple(as_agent(name) for name in sorted(DELEGATES - {tool}))
    leading = leading_name(tool)
    return () if leading is None else (as_agent(leading),)


def _used(event: HookEvent, project: Path) -> UsedOn | None:
    """Return what a tool of Claude Code is used on; None for commands, which are read as at every other door."""
    if event.tool in DELEGATES:
        named = (str(event.input.get("subagent_type", "")),)
        return UsedOn(kind=Used.NAME, written=named, spelled=named)
    if event.tool == "WebFetch":
        host = (_host(str(event.input.get("url", ""))),)
        return UsedOn(kind=Used.DOMAIN, written=host, spelled=host)
    if event.tool not in FILES:
        return None
    base = str(event.directory or project)
    given = (event.input.get(name) for name in _PATHS)
    paths = tuple(spelled for path in given if isinstance(path, str) for spelled in _resolved(path, base))
    roots = (os.path.normpath(project), os.path.realpath(project))
    home = os.path.expanduser("~")  # noqa: PTH111 - a text is wanted
    return UsedOn(kind=Used.PATH, written=paths, spelled=paths, roots=roots, home=home)


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


def _done(event: HookEvent, arguments: Mapping[str, Any], project: Path) -> tuple[str, str, bool]:
    named = arguments.get(file_argument(event.tool))
    path = named if isinstance(named, str) else None
    if path and event.tool in _WRITERS:
        return WRITE, path, True
    # The work tree as a whole has no resource name, so searching all of it is a permission of its own.
    if path and (
        event.tool in _READERS or (event.tool in _SEARCHERS and os.path.realpath(path) != os.path.realpath(project))
    ):
        return READ, path, True
    if event.tool in SHELLS and (words := _words(arguments.get("command"))):
        program = words[0]
        # A plain name is found on the PATH. A path names that file, and is made absolute: `./make`, which an agent may
        # have written, is not the program `make`.
        return RUN, os.path.realpath(_at(program, event, project)) if "/" in program else program, False
    return CALL, find_mcp(event.tool) or as_agent(event.tool), False


def _placed(event: HookEvent, project: Path) -> dict[str, Any]:
    """Return the arguments with absolute paths, because the recorder runs elsewhere, and with a command's words."""
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


def same_arguments(asked: bytes, used: bytes, event: HookEvent, project: Path) -> bool:
    """Return whether two descriptions of a call mean the same: paths are resolved, empty values ignored."""
    one, other = (
        _placed(structs.replace(event, input=json.loads(each).get("arguments", {})), project) for each in (asked, used)
    )
    return _said(one) == _said(other)


def _said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value not in (None, False, "", [], {})}


def _words(command: object) -> list[str]:
    """Return the words of a command that is one program with arguments; nothing for any other command."""
    if not isinstance(command, str) or _SIMPLE.fullmatch(command) is None:
        return []
    return shlex.split(command)


def _at(path: str, event: HookEvent, project: Path) -> str:
    return os.path.join(event.directory or project, os.path.expanduser(path))  # noqa: PTH111, PTH118 - keeps `..`
