"""OpenCode's sessions: rows of a database, in which a sub-agent is a session with a parent."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from batonpass.adapters.session_files.database_copy import DatabaseCopy
from batonpass.adapters.session_files.json_lines import EPOCH, UNREADABLE, read_milliseconds
from batonpass.adapters.session_files.patches import changed_file, edited_file, read_unified
from batonpass.adapters.session_files.session_place import SessionFiles, certain_part, is_inside, root_of
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    FilePatch,
    LinkedBy,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    SubagentLink,
    ToolResult,
    ToolUse,
    words_to,
)
from batonpass.adapters.session_files.told_values import as_mapping, as_objects, as_text
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder
from batonpass.store.sql import Queries

_QUERIES: Final = Queries("batonpass.adapters.session_files.readers", "opencode.sql")
_UNREADABLE: Final = (sqlite3.Error, OSError)


class _Session(Struct, frozen=True):
    id: str
    parent: str | None
    directory: str
    version: str | None
    begun: int
    updated: int
    parts: int
    size: int


class OpenCodeSessions(SessionReader):
    """The sessions of OpenCode, in its own database or in another."""

    program: ClassVar[str] = Coder.OPENCODE
    title: ClassVar[str] = "OpenCode"

    def __init__(self, database: Path | None = None) -> None:
        given = os.environ.get("XDG_DATA_HOME")
        home = Path(given) if given else Path.home() / ".local" / "share"
        self._database = DatabaseCopy(database or home / "opencode" / "opencode.db")

    @property
    def place(self) -> Path:
        """Return where the database is."""
        return self._database.path

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions of which one worked in a project, each with all that it started."""
        rows = self._rows()
        parents = {name: row.parent for name, row in rows.items()}
        families: dict[str, list[_Session]] = {}
        for row in rows.values():
            families.setdefault(root_of(row.id, parents), []).append(row)
        for root, family in families.items():
            if any(is_inside(one.directory, project) for one in family):
                extent = {
                    "parts": sum(one.parts for one in family),
                    "updated": max(one.updated for one in family),
                    "bytes": sum(one.size for one in family),
                }
                agents = {one.id: self.place for one in family if one.id != root}
                yield SessionFiles(session=root, main=self.place, agents=agents, extent=extent)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        del project  # paths are absolute
        rows = self._rows()
        info = SessionInfo(id=files.session)
        for session in (files.session, *files.agents):
            reading = _Parts(agent=None if session == files.session else session)
            try:
                for name, at, part, message in self._database.ask(_QUERIES["parts"], (session,)):
                    yield from self._part(reading, str(name), at, part, message)
            except _UNREADABLE as error:
                yield self._database.problem(error)
            if session == files.session:
                known = rows.get(session)
                info = SessionInfo(id=session, version=None if known is None else known.version, model=reading.model)
        yield info

    def mentioning(self, names: Iterable[str]) -> Callable[[SessionFiles], bool]:
        """Return a test whether a session may mention one of these files."""
        wanted = [certain_part(PurePosixPath(name).name).decode() for name in names]

        def may_mention(files: SessionFiles) -> bool:
            return any(
                next(self._database.ask(_QUERIES["mention"], (session, name)), None) is not None
                for session in (files.session, *files.agents)
                for name in wanted
            )

        return may_mention

    def began_at(self, files: SessionFiles) -> datetime:
        """Return when a session was created."""
        row = self._rows().get(files.session)
        return (None if row is None else read_milliseconds(row.begun)) or EPOCH

    def ended_at(self, files: SessionFiles) -> datetime:
        """Return when a session was last written."""
        return read_milliseconds((files.extent or {}).get("updated")) or EPOCH

    def _rows(self) -> dict[str, _Session]:
        if not self.place.exists():
            return {}
        try:
            return {str(row[0]): _Session(*row) for row in self._database.ask(_QUERIES["sessions"])}
        except _UNREADABLE:
            return {}

    def _part(
        self, reading: "_Parts", name: str, at: object, part: object, message: object
    ) -> Iterator[Record | SkippedLine]:
        try:
            told, said = (as_mapping(msgspec.json.decode(str(one))) for one in (part, message))
        except UNREADABLE:
            yield SkippedLine(path=self.place, line=0, what=f"part {name} is not JSON")
            return
        yield from reading.take(name, read_milliseconds(at) or EPOCH, told, said)


class _Parts(Struct, kw_only=True):
    """One session's parts, as they are read."""

    agent: str | None
    model: str | None = None

    def take(self, name: str, at: datetime, part: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[Record]:
        is_user = message.get("role") == "user"
        self.model = as_text(message.get("modelID")) or self.model
        match part:
            case {"type": "text", "text": str(text)} if text.strip():
                if not is_user:
                    yield SaidInWords(agent=self.agent, at=at, text=text, uuid=name)
                elif part.get("synthetic") is not True:  # the program's own words
                    yield words_to(self.agent, at, text, name)
            case {"type": "tool", "tool": str(tool), "callID": str(call), "state": dict(state)}:
                yield from self._called(tool, call, state, at, name)

    def _called(self, tool: str, call: str, state: Mapping[str, Any], at: datetime, uuid: str) -> Iterator[Record]:
        given = dict(as_mapping(state.get("input")))
        use = use_of(Coder.OPENCODE, tool, given, call=call, agent=self.agent, at=at, uuid=uuid, model=self.model)
        yield use
        told = as_mapping(state.get("metadata"))
        if use.delegates and (child := as_text(told.get("sessionId"))) is not None:
            kind = as_text(given.get("subagent_type"))
            yield SubagentLink(agent=child, tool_use_id=call, how=LinkedBy.RESULT, agent_type=kind)
        status = state.get("status")
        if status not in {"completed", "error"}:
            return  # under way
        ok = status == "completed" and (use.command is None or told.get("exit") in {None, 0})
        text = as_text(state.get("output")) or as_text(state.get("error")) or ""
        ended = read_milliseconds(as_mapping(state.get("time")).get("end")) or at
        patches = tuple(_patches(use, told)) if ok else ()
        yield ToolResult(
            agent=self.agent, tool_use_id=call, ok=ok, at=ended, uuid=f"{uuid}/result", text=text, patches=patches
        )


def _patches(use: ToolUse, told: Mapping[str, Any]) -> Iterator[FilePatch]:
    content = use.input.get("content")
    if use.target is not None and isinstance(content, str):
        if told.get("exists") is False:
            yield changed_file(use.target, None, content, written=True)
        elif (diff := as_text(told.get("diff"))) is not None:
            yield from edited_file(use.target, read_unified(diff))
        else:
            yield FilePatch(path=use.target, after=content, written=True)
        return
    several = list(as_objects(told.get("files")))
    for one in several:
        path, diff = as_text(one.get("filePath")), as_text(one.get("patch")) or as_text(one.get("diff"))
        if path is not None and diff is not None:
            yield from edited_file(path, read_unified(diff))
    if not several and use.target is not None and (diff := as_text(told.get("diff"))) is not None:
        yield from edited_file(use.target, read_unified(diff))
