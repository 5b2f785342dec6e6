"""Goose's sessions: rows of a database, in which a sub-agent's session is named by the result of its call."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field

from batonpass.adapters.session_files.database_copy import DatabaseCopy
from batonpass.adapters.session_files.json_lines import EPOCH, UNREADABLE, read_milliseconds
from batonpass.adapters.session_files.patches import changed_file, unplaced_hunk
from batonpass.adapters.session_files.session_place import SessionFiles, certain_part, is_inside
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
from batonpass.adapters.session_files.told_values import as_mapping, as_objects, as_text, words_of
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder
from batonpass.store.sql import Queries

_QUERIES: Final = Queries("batonpass.adapters.session_files.readers", "goose.sql")
_UNREADABLE: Final = (sqlite3.Error, OSError)
_SUB_AGENT: Final = "sub_agent"
_CREATED: Final = "Created "
_SECONDS: Final = 100_000_000_000  # a larger number of seconds would be thousands of years ahead: milliseconds


class _GooseRow(Struct, frozen=True):
    id: str
    directory: str
    kind: str
    begun: int
    ended: int
    messages: int
    size: int


class GooseSessions(SessionReader):
    """The sessions of Goose, in its own database or in another."""

    program: ClassVar[str] = Coder.GOOSE
    title: ClassVar[str] = "Goose"

    def __init__(self, database: Path | None = None) -> None:
        root, given = os.environ.get("GOOSE_PATH_ROOT"), os.environ.get("XDG_DATA_HOME")
        home = Path(root) / "data" if root else (Path(given) if given else Path.home() / ".local" / "share") / "goose"
        self._database = DatabaseCopy(database or home / "sessions" / "sessions.db")

    @property
    def place(self) -> Path:
        """Return where the database is."""
        return self._database.path

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions that worked in a project, each with all that it started."""
        rows = self._rows()
        started: set[str] = set()
        families: dict[str, list[str]] = {}
        for name, row in rows.items():
            if row.kind != _SUB_AGENT:
                families[name] = self._below(name, rows)
                started.update(families[name])
        families |= {name: [] for name in rows if name not in families and name not in started}
        for root, below in families.items():
            family = [rows[name] for name in (root, *below)]
            if any(is_inside(one.directory, project) for one in family):
                extent = {
                    "messages": sum(one.messages for one in family),
                    "updated": max(one.ended for one in family),
                    "bytes": sum(one.size for one in family),
                }
                yield SessionFiles(
                    session=root, main=self.place, agents=dict.fromkeys(below, self.place), extent=extent
                )

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        del project  # paths are absolute
        for session in (files.session, *files.agents):
            reading = _GooseChat(agent=None if session == files.session else session)
            try:
                for number, name, role, at, content in self._database.ask(_QUERIES["messages"], (session,)):
                    uuid = as_text(name) or f"{session}:{number}"
                    try:
                        parts = list(as_objects(msgspec.json.decode(str(content))))
                    except UNREADABLE:
                        yield SkippedLine(path=self.place, line=0, what=f"message {number} is not JSON")
                        continue
                    yield from reading.take(parts, _time(at), uuid, is_user=role == "user")
            except _UNREADABLE as error:
                yield self._database.problem(error)
        yield SessionInfo(id=files.session)

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
        """Return the time of the first message."""
        row = self._rows().get(files.session)
        return EPOCH if row is None else _time(row.begun)

    def ended_at(self, files: SessionFiles) -> datetime:
        """Return the time of the last message."""
        return _time((files.extent or {}).get("updated", 0))

    def _rows(self) -> dict[str, _GooseRow]:
        if not self.place.exists():
            return {}
        try:
            return {str(row[0]): _GooseRow(*row) for row in self._database.ask(_QUERIES["sessions"])}
        except _UNREADABLE:
            return {}

    def _below(self, root: str, rows: Mapping[str, _GooseRow]) -> list[str]:
        """Return the sessions that a session started, and those that they started."""
        found: list[str] = []
        waiting = [root]
        while waiting:
            for (content,) in self._database.ask(_QUERIES["started"], (waiting.pop(),)):
                for child in _children(str(content)):
                    if child in rows and child != root and child not in found:
                        found.append(child)
                        waiting.append(child)
        return found


class _GooseChat(Struct, kw_only=True):
    """One conversation under way."""

    agent: str | None
    uses: dict[str, ToolUse] = field(default_factory=dict)

    def take(self, parts: list[dict[str, Any]], at: datetime, uuid: str, *, is_user: bool) -> Iterator[Record]:
        for part in parts:
            match part:
                case {"type": "toolRequest", "id": str(call), "toolCall": {"value": {"name": str(tool)} as asked}}:
                    given = dict(as_mapping(asked.get("arguments")))
                    use = use_of(Coder.GOOSE, tool, given, call=call, agent=self.agent, at=at, uuid=uuid)
                    self.uses[call] = use
                    yield use
                case {"type": "toolResponse", "id": str(call), "toolResult": dict(result)} if call in self.uses:
                    yield from self._returned(self.uses.pop(call), result, at, uuid)
        text = words_of([part for part in parts if part.get("type") == "text"])
        if text.strip() and not is_user:
            yield SaidInWords(agent=self.agent, at=at, text=text, uuid=uuid)
        elif text.strip():
            yield words_to(self.agent, at, text, uuid)

    def _returned(self, use: ToolUse, result: Mapping[str, Any], at: datetime, uuid: str) -> Iterator[Record]:
        value = as_mapping(result.get("value"))
        child = as_text(as_mapping(value.get("_meta")).get("subagent_session_id"))
        if child is not None:
            yield SubagentLink(agent=child, tool_use_id=use.tool_use_id, how=LinkedBy.RESULT)
        ok = result.get("status") == "success" and value.get("isError") is not True
        text = words_of(value.get("content")) or as_text(result.get("error")) or ""
        patches = tuple(_patches(use, text)) if ok and use.target is not None else ()
        yield ToolResult(
            agent=self.agent, tool_use_id=use.tool_use_id, ok=ok, at=at, uuid=uuid, text=text, patches=patches
        )


def _patches(use: ToolUse, text: str) -> Iterator[FilePatch]:
    match use.input:
        case {"before": str(old), "after": str(new)} | {"old_str": str(old), "new_str": str(new)}:
            # Which text was replaced is told, and where it was is not.
            yield FilePatch(path=use.target or "", hunks=(unplaced_hunk(old, new),))
        case {"content": str(new)} if text.startswith(_CREATED):
            yield changed_file(use.target or "", None, new, written=True)
        case {"content": str(new)} | {"file_text": str(new)}:
            yield FilePatch(path=use.target or "", after=new, written=True)


def _children(content: str) -> Iterator[str]:
    try:
        parts = list(as_objects(msgspec.json.decode(content)))
    except UNREADABLE:
        return
    for part in parts:
        value = as_mapping(as_mapping(part.get("toolResult")).get("value"))
        if (child := as_text(as_mapping(value.get("_meta")).get("subagent_session_id"))) is not None:
            yield child


def _time(at: object) -> datetime:
    if not isinstance(at, int) or at < 0:
        return EPOCH
    return (read_milliseconds(at) if at > _SECONDS else datetime.fromtimestamp(at, UTC)) or EPOCH
