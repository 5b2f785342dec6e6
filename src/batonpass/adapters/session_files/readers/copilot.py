"""Copilot CLI's sessions: one file of events for each, below `~/.copilot/session-state`, sub-agents included."""

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field

from batonpass.adapters.session_files.json_lines import EPOCH, read_time, take_lines
from batonpass.adapters.session_files.patches import changed_file, edited_file, read_git_diffs
from batonpass.adapters.session_files.session_place import SessionFiles, entries, spellings, worked_in
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    FilePatch,
    LinkedBy,
    Prompt,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    SubagentEnded,
    SubagentLink,
    Task,
    ToolResult,
    ToolUse,
)
from batonpass.adapters.session_files.told_values import as_mapping, as_objects, as_text
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder

_EVENTS: Final = "events.jsonl"


class _Event(Struct, rename="camel"):
    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    agent_id: str | None = None
    data: dict[str, Any] = {}


_DECODE: Final = msgspec.json.Decoder(_Event).decode


class CopilotSessions(SessionReader):
    """The sessions of Copilot CLI, in its own directory or in another."""

    program: ClassVar[str] = Coder.COPILOT
    title: ClassVar[str] = "Copilot CLI"

    def __init__(self, home: Path | None = None) -> None:
        given = os.environ.get("COPILOT_HOME")
        self._home = home or (Path(given) if given else Path.home() / ".copilot")

    @property
    def place(self) -> Path:
        """Return where the events are."""
        return self._home / "session-state"

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions that worked in a project."""
        spelled = spellings(project)
        for folder in entries(self.place):
            main = folder / _EVENTS
            if worked_in(main, spelled):
                yield SessionFiles(session=folder.name, main=main)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        del project  # paths are absolute
        reading = _Session()
        yield from take_lines(files.main, _DECODE, reading.take, name=files.session)
        yield SessionInfo(id=files.session, version=reading.version, model=reading.model)


class _Session(Struct):
    """One session under way."""

    version: str | None = None
    model: str | None = None
    at: datetime = EPOCH
    uses: dict[str, ToolUse] = field(default_factory=dict)

    def take(self, event: _Event, place: str) -> Iterator[Record]:
        self.at = read_time(event.timestamp) or self.at
        data, uuid = event.data, event.id or place
        # Older versions name a sub-agent only by the call that started it.
        agent = event.agent_id or as_text(data.get("parentToolCallId"))
        match event.type:
            case "session.start":
                self.version = as_text(data.get("copilotVersion"))
                self.model = as_text(data.get("selectedModel"))
            case "session.model_change" if agent is None:
                self.model = as_text(data.get("newModel")) or self.model
            case "user.message":
                yield from self._said(data, agent, uuid)
            case "assistant.message":
                if (text := as_text(data.get("content"))) is not None and text.strip():
                    yield SaidInWords(agent=agent, at=self.at, text=text, uuid=uuid)
            case "tool.execution_start":
                yield from self._used(data, agent, uuid)
            case "tool.execution_complete":
                yield from self._returned(data, agent, uuid)
            case "subagent.started" | "subagent.completed" | "subagent.failed":
                yield from self._child(event.type, data, event.agent_id)

    def _said(self, data: Mapping[str, Any], agent: str | None, uuid: str) -> Iterator[Record]:
        text = as_text(data.get("content"))
        if text is None or not text.strip():
            return
        if agent is not None:
            yield Task(agent=agent, at=self.at, text=text, uuid=uuid)
        elif data.get("source") in {None, "user"}:  # others are the program's own words
            yield Prompt(at=self.at, text=text, uuid=uuid)

    def _used(self, data: Mapping[str, Any], agent: str | None, uuid: str) -> Iterator[Record]:
        match data:
            case {"toolCallId": str(call), "toolName": str(tool)}:
                given = dict(as_mapping(data.get("arguments")))
                # Older versions do not say it with the call, and a sub-agent may have another than the session.
                model = as_text(data.get("model")) or (self.model if agent is None else None)
                self.uses[call] = use = use_of(
                    Coder.COPILOT, tool, given, call=call, agent=agent, at=self.at, uuid=uuid, model=model
                )
                yield use

    def _returned(self, data: Mapping[str, Any], agent: str | None, uuid: str) -> Iterator[Record]:
        call = as_text(data.get("toolCallId")) or ""
        if (use := self.uses.pop(call, None)) is None:
            return
        ended = as_mapping(data.get("shellExecution")).get("exitCode")
        ok = data.get("success") is True and ended in {None, 0}
        result = as_mapping(data.get("result"))
        text = as_text(result.get("content")) or as_text(as_mapping(data.get("error")).get("message")) or ""
        patches = tuple(_patches(use, data, as_text(result.get("detailedContent")) or "")) if ok else ()
        yield ToolResult(agent=agent, tool_use_id=call, ok=ok, at=self.at, uuid=uuid, text=text, patches=patches)

    def _child(self, kind: str, data: Mapping[str, Any], agent: str | None) -> Iterator[Record]:
        call = as_text(data.get("toolCallId"))
        if call is None:
            return
        if kind == "subagent.started":
            name = as_text(data.get("agentType")) or as_text(data.get("agentName"))
            yield SubagentLink(agent=agent or call, tool_use_id=call, how=LinkedBy.META, agent_type=name)
        else:
            yield SubagentEnded(agent=agent or call, tool_use_id=call, status=kind.partition(".")[2])


def _patches(use: ToolUse, data: Mapping[str, Any], told: str) -> Iterator[FilePatch]:
    """Yield the files that a call says it edited, with the diffs beside it."""
    diffs = read_git_diffs(told)
    for edit in as_objects(data.get("fileEdits")):
        path = as_text(edit.get("path"))
        if path is None:
            continue
        text = as_text(use.input.get("file_text"))
        if edit.get("kind") == "create" and text is not None and use.target == path:
            yield changed_file(path, None, text, written=True)
        else:
            yield from edited_file(path, diffs.get(path.removeprefix("/")))
