"""What a call of Claude Code's tools does to what, as a grant names it.

Files are read and written by their path; a command that is one program is run, by that program's name; a tool of an MCP
server is called as behind the proxy; whatever else there is, is called by its name.
"""

import dataclasses
import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from batonpass.adapters.claude_code.hooks.events import HookEvent, file_argument
from batonpass.adapters.claude_code.hooks.rules.agent_rules import DELEGATES, FILES, SHELLS
from batonpass.adapters.claude_code.hooks.rules.refusal import Refusal
from batonpass.adapters.claude_code.hooks.rules.tool_kinds import ToolKind, leading_name, tools_of
from batonpass.adapters.claude_code.importer.receipt_words import as_agent, describe_arguments, is_reading, label_of
from batonpass.adapters.claude_code.transcripts.transcript_places import relative_path
from batonpass.adapters.mcp.server_declaration import Hints, Server, name_for
from batonpass.guard.policy.gates import GateDecision
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import ForeignCall, find_mcp, split_mcp
from batonpass.handoff.tools.json_values import readable
from batonpass.model.base.kinds import Gate
from batonpass.policy.file_place import FILE_NAME

RUN: Final = "run"
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
# No shell would make more of these than words: nothing is substituted, joined, sent elsewhere or left out.
_WORD: Final = r"(?:[\w@%+=:,./*?\[\]~{}^-]|'[^']*'|\"[^\"$`\\!]*\")+"
# What stands in quotes is that; of the rest, a shell may make other words, and so other files, of these.
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_EXPANDED: Final = re.compile(r"[*?\[\]{}~^]|\s=")
_SIMPLE: Final = re.compile(rf"\s*[\w@%+,./-]+(?:[ \t]+{_WORD})*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class HookedCall(ForeignCall):
    """A call that a hook is asked about, in the words of the one way that every call goes."""

    event: HookEvent = field(default_factory=lambda: HookEvent(name="", session=""))
    file: str | None = None  # what it changes: the file that it edits, as seen from the project
    refusal: Refusal | None = None  # what the project's own rules for agents say against it

    @property
    def described(self) -> bytes:
        """Return tool and arguments as the model wrote them."""
        return describe_arguments(self.event.tool, self.event.input)

    @property
    def target(self) -> str | None:
        """Return the file that it edits."""
        return self.file

    @property
    def mentioned(self) -> Mapping[str, Any]:
        """Return the arguments as the model wrote them: relative paths begin where the call is made."""
        return self.event.input

    @property
    def seen_elsewhere(self) -> bool:
        """Return that the hooks look themselves at what a call changes: it is made in another process."""
        return True

    def find_refusals(self) -> tuple[GateDecision, ...]:
        """Return what the rules for its agent say against it."""
        refusal = self.refusal
        if refusal is None:
            return ()
        return (GateDecision(gate=Gate.DENY, rule=refusal.rule, line=None, sentence=refusal.sentence, where=FILE_NAME),)


def call_of(
    event: HookEvent, project: Path, servers: Mapping[str, Server], refusal: Refusal | None = None
) -> HookedCall:
    """Return a call as every door makes one."""
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
        refusal=refusal,
    )


def _declared(event: HookEvent, place: str, servers: Mapping[str, Server]) -> Declared:
    """Return what is known of a tool: of Claude Code's own by their names, of servers' by what the file says."""
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
        # What was in a file before an edit stands on the receipt, so an edit can be undone.
        reversible=True if tool in _WRITERS else None,
        external=label_of(tool).is_external,
        any_file=tool in SHELLS,
        place=place,
        searches=tool == _GREP,  # Glob and LS tell names, and nothing of what is in a file
        kin=_kin_of(tool),
    )


def _kin_of(tool: str) -> tuple[str, ...]:
    """Return by which other names rules mean a tool: all that run commands by the name of one."""
    leading = leading_name(tool) if tool in SHELLS else None
    return () if leading is None else (as_agent(leading),)


def _done(event: HookEvent, arguments: Mapping[str, Any], project: Path) -> tuple[str, str, bool]:
    named = arguments.get(file_argument(event.tool))
    path = named if isinstance(named, str) else None
    if path and event.tool in _WRITERS:
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


def _placed(event: HookEvent, project: Path) -> dict[str, Any]:
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


def same_arguments(asked: bytes, used: bytes, event: HookEvent, project: Path) -> bool:
    """Return whether two descriptions of a call mean the same: paths by where they are, without what says nothing."""
    one, other = (
        _placed(structs.replace(event, input=json.loads(each).get("arguments", {})), project) for each in (asked, used)
    )
    return _said(one) == _said(other)


def _said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value not in (None, False, "", [], {})}


def _words(command: object) -> list[str]:
    """Return the words of a command that is one program with arguments; none if it is anything more."""
    if not isinstance(command, str) or _SIMPLE.fullmatch(command) is None:
        return []
    return shlex.split(command)


def _at(path: str, event: HookEvent, project: Path) -> str:
    return os.path.join(event.directory or project, os.path.expanduser(path))  # noqa: PTH111, PTH118 - `..` stays in it


def _is_same(path: str, project: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(project)
