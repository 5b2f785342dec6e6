"""Qwen Code's sessions: one file of lines for each below `~/.qwen/projects`, and one for each sub-agent."""

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field

from batonpass.adapters.session_files.json_lines import EPOCH, UNREADABLE, read_time, take_lines
from batonpass.adapters.session_files.readers.google_parts import (
    find_patches,
    is_error,
    patches_in_words,
    response_of,
    texts_of,
)
from batonpass.adapters.session_files.session_place import SessionFiles, entries, spellings, worked_in
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
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

_LARGEST_META: Final = 1024 * 1024


class _QwenLine(Struct, rename="camel"):
    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    timestamp: str | None = None
    version: str | None = None
    model: str | None = None
    cwd: str | None = None
    provenance: str | None = None
    message: dict[str, Any] | None = None
    tool_call_result: dict[str, Any] | None = None


_DECODE: Final = msgspec.json.Decoder(_QwenLine).decode


class QwenSessions(SessionReader):
    """The sessions of Qwen Code, in its own directory or in another."""

    program: ClassVar[str] = Coder.QWEN
    title: ClassVar[str] = "Qwen Code"

    def __init__(self, home: Path | None = None) -> None:
        given = os.environ.get("QWEN_HOME")
        self._home = home or (Path(given) if given else Path.home() / ".qwen")

    @property
    def place(self) -> Path:
        """Return where the sessions are."""
        return self._home / "projects"

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions that worked in a project."""
        spelled = spellings(project)
        for folder in entries(self.place):
            for main in entries(folder / "chats"):
                if main.suffix == ".jsonl" and worked_in(main, spelled):
                    children = entries(folder / "subagents" / main.stem)
                    agents = {path.stem.removeprefix("agent-"): path for path in children if path.suffix == ".jsonl"}
                    yield SessionFiles(session=main.stem, main=main, agents=agents)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        del project  # paths are absolute
        info = SessionInfo(id=files.session)
        for agent, path in ((None, files.main), *files.agents.items()):
            reading = _Chat(agent=agent)
            if agent is not None:
                yield from _meta(path, agent)
            yield from take_lines(path, _DECODE, reading.take)
            if agent is None:
                info = SessionInfo(id=files.session, version=reading.version, model=reading.model)
        yield info


class _Chat(Struct, kw_only=True):
    """One conversation under way."""

    agent: str | None
    version: str | None = None
    model: str | None = None
    at: datetime = EPOCH
    uses: dict[str, ToolUse] = field(default_factory=dict)

    def take(self, line: _QwenLine, place: str) -> Iterator[Record]:
        self.at = read_time(line.timestamp) or self.at
        self.version, self.model = line.version or self.version, line.model or self.model
        uuid = line.uuid or place
        parts = as_mapping(line.message).get("parts")
        match line.type:
            case "user" if line.subtype is None and line.provenance in {None, "real_user"}:
                if (text := texts_of(parts)).strip():
                    yield words_to(self.agent, self.at, text, uuid)
            case "assistant":
                yield from self._answered(parts, line.cwd, uuid)
            case "tool_result":
                yield from self._returned(parts, as_mapping(line.tool_call_result), uuid)

    def _answered(self, parts: object, cwd: str | None, uuid: str) -> Iterator[Record]:
        for part in as_objects(parts):
            match part:
                case {"functionCall": {"id": str(call), "name": str(tool)} as asked}:
                    given = dict(as_mapping(asked.get("args")))
                    use = use_of(
                        Coder.QWEN, tool, given, call=call, agent=self.agent, at=self.at, uuid=uuid, model=self.model
                    )
                    self.uses[call] = use = msgspec.structs.replace(use, cwd=cwd)
                    yield use
        if (text := texts_of(parts)).strip():
            yield SaidInWords(agent=self.agent, at=self.at, text=text, uuid=uuid)

    def _returned(self, parts: object, told: Mapping[str, Any], uuid: str) -> Iterator[Record]:
        call = as_text(told.get("callId")) or ""
        if (use := self.uses.pop(call, None)) is None:
            return
        text = response_of(parts)
        # Of sub-agents only the words of a result are kept.
        is_bare = told.get("status") is None
        ok = not is_error(parts) if is_bare else told.get("status") == "success"
        shown = find_patches(told.get("resultDisplay"), use.input)
        patches = tuple(patches_in_words(use.target, use.input, text) if is_bare else shown) if ok else ()
        denied = "cancelled" if told.get("status") == "cancelled" else None
        yield ToolResult(
            agent=self.agent, tool_use_id=call, ok=ok, at=self.at, uuid=uuid, text=text, patches=patches, denied=denied
        )


def _meta(path: Path, agent: str) -> Iterator[Record | SkippedLine]:
    """Yield the call that started a sub-agent, from the file next to its own."""
    beside = path.with_name(f"{path.stem}.meta.json")
    try:
        with beside.open("rb") as file:
            found = as_mapping(msgspec.json.decode(file.read(_LARGEST_META)))
    except FileNotFoundError:
        return
    except (OSError, *UNREADABLE):
        yield SkippedLine(path=beside, line=1, what="is not JSON")
        return
    if (call := as_text(found.get("toolUseId"))) is not None:
        kind, status = as_text(found.get("agentType")), as_text(found.get("status"))
        yield SubagentLink(agent=agent, tool_use_id=call, how=LinkedBy.META, agent_type=kind, status=status)
