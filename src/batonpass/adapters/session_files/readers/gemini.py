"""Gemini CLI's sessions: one file of lines for each below `~/.gemini/tmp`, and one for each sub-agent.

A message is written again when its calls have an outcome, and whole lists of messages may be written as one line. Each
message and each call counts once.
"""

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field

from batonpass.adapters.session_files.json_lines import EPOCH, decode_object, raw_lines, read_time, take_lines
from batonpass.adapters.session_files.readers.google_parts import find_patches, response_of, texts_of
from batonpass.adapters.session_files.session_place import SessionFiles, entries, is_inside, spellings
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    LinkedBy,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    SubagentLink,
    ToolResult,
    words_to,
)
from batonpass.adapters.session_files.told_values import as_mapping, as_objects, as_text
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder

_OVER: Final = frozenset({"success", "error", "cancelled"})
_CONTEXT: Final = "<session_context>"
_ROOT_FILE: Final = ".project_root"
_LONGEST_PATH: Final = 4096
_FAILED: Final = "Exit Code: "


class GeminiSessions(SessionReader):
    """The sessions of Gemini CLI, in its own directory or in another."""

    program: ClassVar[str] = Coder.GEMINI
    title: ClassVar[str] = "Gemini CLI"

    def __init__(self, home: Path | None = None) -> None:
        given = os.environ.get("GEMINI_CLI_HOME")
        self._home = home or (Path(given) if given else Path.home()) / ".gemini"

    @property
    def place(self) -> Path:
        """Return where the chats are, one folder for each project."""
        return self._home / "tmp"

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions that worked in a project. Older versions name only a digest of the directory."""
        digests = {sha256(spelling.encode()).hexdigest() for spelling in spellings(project)}
        for folder in entries(self.place):
            root = _project_root(folder)
            for main in entries(folder / "chats"):
                if not main.name.startswith("session-") or main.suffix not in {".jsonl", ".json"}:
                    continue
                head = _head(main)
                if is_inside(root, project) if root is not None else head.get("projectHash") in digests:
                    session = as_text(head.get("sessionId")) or main.stem
                    children = entries(folder / "chats" / session)
                    agents = {path.stem: path for path in children if path.suffix == main.suffix}
                    yield SessionFiles(session=session, main=main, agents=agents)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        info = SessionInfo(id=files.session)
        for agent, path in ((None, files.main), *files.agents.items()):
            reading = _GeminiChat(agent=agent, project=project)
            yield from take_lines(path, decode_object, reading.take)
            if agent is None:
                info = SessionInfo(id=files.session, model=reading.model)
        yield info


class _GeminiChat(Struct, kw_only=True):
    """One conversation under way."""

    agent: str | None
    project: Path
    model: str | None = None
    at: datetime = EPOCH
    seen: set[str] = field(default_factory=set)  # messages and calls

    def take(self, line: Mapping[str, Any], place: str) -> Iterator[Record]:
        told = as_mapping(line.get("$set"))
        # Older versions kept a whole session in one object.
        for number, message in enumerate((*as_objects(told.get("messages")), *as_objects(line.get("messages")), line)):
            yield from self._message(message, f"{place}.{number}")

    def _message(self, message: Mapping[str, Any], place: str) -> Iterator[Record]:
        uuid = as_text(message.get("id")) or place
        self.at = read_time(message.get("timestamp")) or self.at
        content = message.get("content")
        match message.get("type"):
            case "user" if self._is_new(uuid):
                text = texts_of(content)
                if text.strip() and not text.startswith(_CONTEXT):
                    yield words_to(self.agent, self.at, text, uuid)
            case "gemini":
                self.model = as_text(message.get("model")) or self.model
                for call in as_objects(message.get("toolCalls")):
                    yield from self._called(call, uuid)
                if (text := texts_of(content)).strip() and self._is_new(uuid):
                    yield SaidInWords(agent=self.agent, at=self.at, text=text, uuid=uuid)

    def _is_new(self, name: str) -> bool:
        is_new = name not in self.seen
        self.seen.add(name)
        return is_new

    def _called(self, call: Mapping[str, Any], uuid: str) -> Iterator[Record]:
        match call:
            case {"id": str(name), "name": str(tool), "status": str(status)} if status in _OVER:
                pass
            case _:
                return  # under way
        if not self._is_new(f"call/{name}"):
            return
        given = dict(as_mapping(call.get("args")))
        at = read_time(call.get("timestamp")) or self.at
        use = use_of(Coder.GEMINI, tool, given, call=name, agent=self.agent, at=self.at, uuid=uuid, model=self.model)
        yield use
        display = call.get("resultDisplay")
        child = as_text(call.get("agentId"))
        if child is not None and use.delegates:
            kind = as_text(given.get("agent_name"))
            yield SubagentLink(agent=child, tool_use_id=name, how=LinkedBy.RESULT, agent_type=kind)
        text = response_of(call.get("result"))
        ok = status == "success" and (use.command is None or f"\n{_FAILED}" not in text)
        yield ToolResult(
            agent=self.agent,
            tool_use_id=name,
            ok=ok,
            at=at,
            uuid=f"{uuid}/result",
            text=text,
            patches=tuple(find_patches(display, given)) if ok else (),
            denied="cancelled" if status == "cancelled" else None,
        )


def _project_root(folder: Path) -> str | None:
    try:
        with (folder / _ROOT_FILE).open(encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_PATH).strip() or None
    except OSError:
        return None


def _head(path: Path) -> Mapping[str, Any]:
    """Return the first line of a chat."""
    try:
        for _, _, data in raw_lines(path):
            return as_mapping(msgspec.json.decode(data or b"{}"))
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return {}
