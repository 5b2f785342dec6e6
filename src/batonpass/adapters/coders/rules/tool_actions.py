"""Translates calls of coding agents' tools into actions and resources of a grant.

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

from batonpass.adapters.coders.events import HookEvent
from batonpass.adapters.importer.receipt_words import describe_arguments
from batonpass.adapters.mcp.server_declaration import Hints, Server, name_for
from batonpass.adapters.session_files.session_place import relative_path
from batonpass.adapters.tool_kinds import Coder, ToolForm, ToolKind, is_external, leading_name
from batonpass.guard.policy.call_patterns import Used, UsedOn
from batonpass.guard.policy.gates import DoorFacts, GateDecision
from batonpass.handoff.tools.actions import CALL, READ, WRITE
from batonpass.handoff.tools.declaration import Declared
from batonpass.handoff.tools.foreign_call import ForeignCall, resource_of_mcp, split_mcp
from batonpass.handoff.tools.json_values import readable
from batonpass.model.base.ids import AgentId, as_agent
from batonpass.model.policy.policy_rules import DoorName

RUN: Final = "run"
PATCHED: Final = "files"
_PATHS: Final = ("file_path", "notebook_path", "path")
_ARGUMENTS: Final = "arguments"
# The names of Claude Code's tools that start sub-agents: a rule about one is about all of them, in every agent.
_DELEGATES: Final = ("Agent", "Task")
# What stands between a server and its tool in the names that agents give to MCP tools. A name of a server may contain
# it as well, so only servers that the policy file declares are found in it.
_BETWEEN: Final[Mapping[Coder, tuple[str, str]]] = {
    Coder.COPILOT: ("", "-"),
    Coder.GEMINI: ("mcp_", "_"),
    Coder.OPENCODE: ("", "_"),
    Coder.CLINE: ("", "__"),
    Coder.DROID: ("", "___"),
}
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
        """Return the arguments as the model wrote them; relative paths start at the call's directory.

        A patch is a text; the files that it names are mentioned beside it.
        """
        form = self.event.form
        if form is None or form.patch is None:
            return self.event.input
        return {**self.event.input, PATCHED: list(self.event.paths)}

    @property
    def seen_elsewhere(self) -> bool:
        """Return True: the call runs in another process, and the hooks look at its changes themselves."""
        return True

    def find_refusals(self) -> tuple[GateDecision, ...]:
        """Return the refusal of every call while the file with the rules is invalid."""
        return () if self.refusal is None else (self.refusal,)

    @property
    def told_by_door(self) -> DoorFacts:
        """Return the caller and the object of the call."""
        return DoorFacts(door=DoorName(self.event.coder), agent=self.agent, used=_used(self.event, self.project))


def call_of(
    event: HookEvent,
    project: Path,
    servers: Mapping[str, Server],
    *,
    refusal: GateDecision | None = None,
    kind: str | None = None,
) -> HookedCall:
    """Return a call in the form that all doors use. `kind` is the type of sub-agent that was offered the work."""
    server = _server_of(event, servers)
    arguments = _placed(event, project) if server is None else dict(event.input)
    does, to, on_disk = _done(event, arguments, project, server)
    declared = _declared(event, str(event.directory or project), servers, server)
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
        local=server is None,
        event=event,
        file=file,
        project=project,
        refusal=refusal,
        agent=None if event.agent is None or kind is not None or not event.agent_type else as_agent(event.agent_type),
    )


def _server_of(event: HookEvent, servers: Mapping[str, Server]) -> tuple[str, str] | None:
    """Return the server and the tool of a call of an MCP tool; None for any other call."""
    if event.form is not None:
        return None
    named = split_mcp(event.tool)
    if named is not None or event.coder not in _BETWEEN:
        return named
    before, between = _BETWEEN[event.coder]
    fitting = [name for name in servers if event.tool.startswith(f"{before}{name}{between}")]
    if not fitting:
        return None
    name = max(fitting, key=len)
    return name, event.tool.removeprefix(f"{before}{name}{between}")


def _declared(event: HookEvent, place: str, servers: Mapping[str, Server], named: tuple[str, str] | None) -> Declared:
    """Return the declaration of a tool: an agent's own by name, a server's from the file."""
    tool, form = event.tool, event.form
    if named is not None:
        server = servers.get(named[0], Server(name=name_for(named[0])))
        return dataclasses.replace(server.declare(named[1], Hints()), name=as_agent(tool), place=place)
    shell = event.kind is ToolKind.SHELL
    return Declared(
        name=as_agent(tool),
        reads=event.reads,
        content=() if form is None else tuple(name for name in event.input if name and name not in form.naming),
        scripts=(form.command,) if shell and form is not None and form.command is not None else (),
        # The receipt contains the text before an edit, so an edit can be undone.
        reversible=True if event.kind is ToolKind.WRITER else None,
        external=is_external(event.coder, tool),
        any_file=shell,
        place=place,
        searches=form is not None and form.searches,  # others return names only
        kin=_kin_of(event),
    )


def _kin_of(event: HookEvent) -> tuple[str, ...]:
    """Return other names that rules use for a tool: one name stands for all tools that run commands or edit files."""
    if event.delegates:
        return tuple(as_agent(name) for name in _DELEGATES if name != event.tool)
    leading = leading_name(event.coder, event.tool)
    return () if leading is None else (as_agent(leading),)


def _used(event: HookEvent, project: Path) -> UsedOn | None:
    """Return the object of a call; None for commands, which are read as at every other door."""
    form = event.form
    if form is None or form.kind is ToolKind.SHELL:
        return None
    if form.kind is ToolKind.DELEGATE:
        named = (str(event.input.get(form.sub_agent or "", "")),)
        return UsedOn(kind=Used.NAME, written=named, spelled=named)
    if form.url is not None:
        host = (_host(str(event.input.get(form.url, ""))),)
        return UsedOn(kind=Used.DOMAIN, written=host, spelled=host)
    if form.access is None:
        return None
    base = str(event.directory or project)
    given = (*(event.input.get(name) for name in _path_names(form)), *event.paths)
    paths = tuple(
        dict.fromkeys(spelled for path in given if isinstance(path, str) for spelled in _resolved(path, base))
    )
    roots = (os.path.normpath(project), os.path.realpath(project))
    home = os.path.expanduser("~")  # noqa: PTH111 - a text is wanted
    return UsedOn(kind=Used.PATH, written=paths, spelled=paths, roots=roots, home=home)


def _path_names(form: ToolForm) -> tuple[str, ...]:
    """Return the arguments of a tool that can be paths: similar names next to the one that counts are followed too."""
    return tuple(dict.fromkeys((*_PATHS, *(() if form.file is None else (form.file,)))))


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


def _done(
    event: HookEvent, arguments: Mapping[str, Any], project: Path, server: tuple[str, str] | None
) -> tuple[str, str, bool]:
    form = event.form
    named = None if form is None or form.file is None else arguments.get(form.file)
    path = named if isinstance(named, str) else None
    if event.kind is ToolKind.WRITER and event.path is not None:
        return WRITE, _at(event.path, event, project), True
    # The work tree as a whole has no resource name, so searching all of it is a permission of its own. So is a patch of
    # several files.
    if path and (
        event.kind is ToolKind.READER
        or (event.kind is ToolKind.SEARCHER and os.path.realpath(path) != os.path.realpath(project))
    ):
        return READ, path, True
    if event.kind is ToolKind.SHELL and (words := _words(event.command)):
        program = words[0]
        # A plain name is found on the PATH. A path names that file, and is made absolute: `./make`, which an agent may
        # have written, is not the program `make`.
        return RUN, os.path.realpath(_at(program, event, project)) if "/" in program else program, False
    return CALL, as_agent(event.tool) if server is None else resource_of_mcp(*server), False


def _placed(event: HookEvent, project: Path) -> dict[str, Any]:
    """Return the arguments with absolute paths, because the recorder runs elsewhere, and with a command's words."""
    form = event.form
    names = _PATHS if form is None else _path_names(form)
    placed = {
        name: _at(value, event, project) if name in names and isinstance(value, str) and value else value
        for name, value in event.input.items()
    }
    if form is not None and form.patch is not None and event.paths:
        # A patch is text. The files in it are paths, which are followed as those of any other editor are.
        placed[PATCHED] = [_at(path, event, project) for path in event.paths]
    if event.kind is ToolKind.SHELL and (words := _words(event.command)):
        placed.pop(_ARGUMENTS, None)
        if _EXPANDED.search(_QUOTED.sub("", str(event.command))) is None:
            placed[_ARGUMENTS] = words[1:]
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
