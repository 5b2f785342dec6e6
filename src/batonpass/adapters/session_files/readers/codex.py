"""Codex's sessions: one file of lines for each thread, below `~/.codex/sessions`.

A thread that another one started says so in its first line. Changes of files are told in unified diffs, which Codex
makes from the files themselves, so their positions are those of the file.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.adapters.session_files.json_lines import EPOCH, LONGEST, UNREADABLE, find_decoded, mending, read_time
from batonpass.adapters.session_files.patch_text import read_patch_text
from batonpass.adapters.session_files.patches import changed_file, hunks_between, read_unified
from batonpass.adapters.session_files.session_place import SessionFiles, entries, root_of, spellings, worked_in
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    FilePatch,
    LinkedBy,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    SubagentLink,
    Task,
    ToolResult,
    ToolUse,
    words_to,
)
from batonpass.adapters.session_files.told_values import as_arguments, as_mapping, as_text, read_object, words_of
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder

_PATCHER: Final = "apply_patch"
_FOLDERS: Final = ("sessions", "archived_sessions")
_STARTED: Final = frozenset({"spawn_agent", "spawnAgent"})
_WENT_WRONG: Final = frozenset({"failed", "declined"})
_SUCCESS: Final = ("Success. Updated the following files:", "Exit code: 0\n")
_EXITED: Final = "Process exited with code "


class _Line(Struct):
    type: str = ""
    timestamp: str | None = None
    payload: dict[str, Any] = {}


_DECODE: Final = msgspec.json.Decoder(_Line).decode


class CodexSessions(SessionReader):
    """The sessions of Codex, in its own directory or in another."""

    program: ClassVar[str] = Coder.CODEX
    title: ClassVar[str] = "Codex"

    def __init__(self, home: Path | None = None) -> None:
        given = os.environ.get("CODEX_HOME")
        self._home = home or (Path(given) if given else Path.home() / ".codex")

    @property
    def place(self) -> Path:
        """Return where the threads are."""
        return self._home / _FOLDERS[0]

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions of which a thread worked in a project: each is a thread with all that it started."""
        threads = dict(self._threads())
        parents = {name: thread.parent for name, thread in threads.items()}
        families: dict[str, dict[str, Path]] = {}
        for name, thread in threads.items():
            families.setdefault(root_of(name, parents), {})[name] = thread.path
        spelled = spellings(project)
        for root, paths in families.items():
            if any(worked_in(path, spelled) for path in paths.values()):
                agents = {name: path for name, path in paths.items() if name != root}
                yield SessionFiles(session=root, main=paths[root], agents=agents)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session, thread by thread."""
        del project  # paths are absolute
        info = SessionInfo(id=files.session)
        for agent, path in ((None, files.main), *files.agents.items()):
            reading = _Thread(path=path, agent=agent)
            try:
                yield from reading.read()
            except OSError as error:
                yield SkippedLine(path=path, line=0, what=f"cannot be read: {error.strerror}")
            if agent is None:
                info = SessionInfo(id=files.session, version=reading.version, model=reading.model)
        yield info

    def began_at(self, files: SessionFiles) -> datetime:
        """Return the time of the first line."""
        with contextlib.suppress(OSError, *UNREADABLE), files.main.open("rb") as file:
            line = mending(_DECODE, file.readline(LONGEST))
            return (None if line is None else read_time(line.timestamp)) or EPOCH
        return EPOCH

    def _threads(self) -> Iterator[tuple[str, "_ThreadFile"]]:
        for folder in _FOLDERS:
            for path in _rollouts(self._home / folder, 3):
                found = _first_line(path)
                name = None if found is None else found.get("id")
                if found is not None and isinstance(name, str) and name:
                    yield name, _ThreadFile(path=path, parent=_parent(found))


class _ThreadFile(Struct, frozen=True, kw_only=True):
    path: Path
    parent: str | None


class _Thread(Struct, kw_only=True):
    """One thread under way: its calls without an outcome, and the facts about them so far."""

    path: Path
    agent: str | None
    version: str | None = None
    model: str | None = None
    cwd: str | None = None
    uses: dict[str, ToolUse] = field(default_factory=dict)  # by call
    items: dict[str, dict[str, Any]] = field(default_factory=dict)  # the outcomes, by call
    tells_changes: bool = False  # there are diffs in this file
    last_prompt: str | None = None

    def read(self) -> Iterator[Record | SkippedLine]:
        """Yield the records of its lines."""
        at = EPOCH
        for found in find_decoded(self.path, _DECODE):
            if isinstance(found, SkippedLine):
                yield found
                continue
            number, line = found
            at = read_time(line.timestamp) or at
            yield from self._line(line.type, line.payload, at, f"{self.path.name}:{number}")

    def _line(self, kind: str, payload: dict[str, Any], at: datetime, place: str) -> Iterator[Record]:
        match kind:
            case "session_meta":
                # A fork has the first line of its original as well; its own comes first.
                self.version = self.version or as_text(payload.get("cli_version"))
                self.cwd = self.cwd or as_text(payload.get("cwd"))
                if self.agent is not None and (role := _role(payload)) is not None:
                    yield SubagentLink(agent=self.agent, tool_use_id="", how=LinkedBy.INFERRED, agent_type=role)
            case "turn_context":
                self.model = as_text(payload.get("model")) or self.model
                self.cwd = as_text(payload.get("cwd")) or self.cwd
            case "event_msg":
                yield from self._event(payload, at, place)
            case "response_item":
                yield from self._item(payload, at, place)

    def _event(self, payload: dict[str, Any], at: datetime, place: str) -> Iterator[Record]:
        match payload:
            case {"type": "user_message", "message": str(text)}:
                yield from self._said(text, at, place)
            case {"type": "item_completed", "item": {"type": "UserMessage", "content": list(content)}}:
                yield from self._said(words_of(content), at, _identity(payload["item"]) or place)
            case {"type": "patch_apply_end", "call_id": str(call)}:
                done = "completed" if payload.get("success") is True else "failed"
                yield from self._done(call, {**payload, "type": "FileChange", "status": done}, at)
            case {"type": "exec_command_end", "call_id": str(call)}:
                done = "completed" if payload.get("exit_code") == 0 else "failed"
                yield from self._done(call, {**payload, "type": "CommandExecution", "status": done}, at)
            case {"type": "collab_agent_spawn_end", "call_id": str(call), "new_thread_id": str(child)}:
                yield SubagentLink(agent=child, tool_use_id=call, how=LinkedBy.RESULT)
            case {"type": "item_completed", "item": {"type": "CollabAgentToolCall", "tool": str(tool)} as item}:
                for child in item.get("receiver_thread_ids") or () if tool in _STARTED else ():
                    if isinstance(child, str) and isinstance(item.get("id"), str):
                        yield SubagentLink(agent=child, tool_use_id=item["id"], how=LinkedBy.RESULT)
            case {
                "type": "item_completed",
                "item": {"type": "FileChange" | "CommandExecution", "id": str(call)} as item,
            }:
                yield from self._done(call, item, at)

    def _said(self, text: str, at: datetime, uuid: str) -> Iterator[Record]:
        # Some versions tell the same words twice, in an old form and in a new one, with nothing in between.
        if not text.strip() or text == self.last_prompt:
            return
        self.last_prompt = text
        yield words_to(self.agent, at, text, uuid)

    def _done(self, call: str, item: dict[str, Any], at: datetime) -> Iterator[Record]:
        """Keep an action until its outcome is told. One that no open call announced was called inside a program."""
        self.tells_changes |= item["type"] == "FileChange"
        if call in self.uses:
            self.items[call] = item
            return
        nested = _PATCHER if item["type"] == "FileChange" else "exec_command"
        given = {"changes": sorted(_changes(item))} if nested == _PATCHER else {"command": item.get("command")}
        uuid = f"item-{call}"
        yield use_of(Coder.CODEX, nested, given, call=call, agent=self.agent, at=at, uuid=uuid, model=self.model)
        text = as_text(item.get("stdout")) or as_text(item.get("aggregated_output")) or ""
        yield self._result(call, text, item, at, uuid)

    def _item(self, payload: dict[str, Any], at: datetime, place: str) -> Iterator[Record]:
        match payload:
            case {"type": "function_call", "name": str(tool), "call_id": str(call)}:
                yield self._used(tool, as_arguments(payload.get("arguments")), call, at, payload)
            case {"type": "custom_tool_call", "name": str(tool), "call_id": str(call)}:
                yield self._used(tool, {"input": payload.get("input")}, call, at, payload)
            case {"type": "local_shell_call", "call_id": str(call)}:
                yield self._used("local_shell", {"action": payload.get("action")}, call, at, payload)
            case {"type": "function_call_output" | "custom_tool_call_output", "call_id": str(call)}:
                yield from self._returned(call, _output(payload.get("output")), at, _identity(payload) or place)
            case {"type": "message", "role": "assistant", "content": list(content)}:
                if (text := words_of(content)).strip():
                    yield SaidInWords(agent=self.agent, at=at, text=text, uuid=_identity(payload) or place)
            case {"type": "agent_message", "content": list(content)} if self.agent is not None:
                if (text := words_of(content)).strip():
                    yield Task(agent=self.agent, at=at, text=text, uuid=_identity(payload) or place)

    def _used(self, tool: str, given: Mapping[str, Any], call: str, at: datetime, payload: dict[str, Any]) -> ToolUse:
        self.last_prompt = None
        # A fork repeats the calls of its original under their ids. A model that is run at home may number them from
        # one in each session, so the words count as well.
        told = msgspec.json.encode([payload.get("id"), call, tool, given], order="deterministic")
        use = use_of(
            Coder.CODEX,
            tool,
            given,
            call=call,
            agent=self.agent,
            at=at,
            uuid=sha256(told).hexdigest()[:24],
            model=self.model,
        )
        self.uses[call] = use = replace(use, cwd=self.cwd)
        return use

    def _returned(self, call: str, text: str, at: datetime, uuid: str) -> Iterator[Record]:
        use, item = self.uses.pop(call, None), self.items.pop(call, None)
        if use is None:
            return
        if use.delegates and (child := _started(text)) is not None:
            yield SubagentLink(agent=child, tool_use_id=call, how=LinkedBy.RESULT)
        if item is None and use.tool == _PATCHER and not self.tells_changes:
            ok = any(sign in text for sign in _SUCCESS)
            patches = read_patch_text(use.input.get("input"), self.cwd) if ok else ()
            yield ToolResult(agent=self.agent, tool_use_id=call, ok=ok, at=at, uuid=uuid, text=text, patches=patches)
        else:
            yield self._result(call, text, item, at, uuid, is_patch=use.tool == _PATCHER)

    def _result(
        self, call: str, text: str, item: dict[str, Any] | None, at: datetime, uuid: str, *, is_patch: bool = False
    ) -> ToolResult:
        if item is None:
            ok = not is_patch and (_EXITED not in text or f"{_EXITED}0\n" in text)
        else:
            ok = item.get("status") not in _WENT_WRONG
        patches = tuple(_patches(item)) if ok and item is not None and item["type"] == "FileChange" else ()
        return ToolResult(agent=self.agent, tool_use_id=call, ok=ok, at=at, uuid=uuid, text=text, patches=patches)


def _rollouts(folder: Path, deep: int) -> Iterator[Path]:
    for path in entries(folder):
        if path.name.startswith("rollout-") and path.suffix == ".jsonl":
            yield path
        elif deep and path.is_dir():
            yield from _rollouts(path, deep - 1)


def _first_line(path: Path) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, *UNREADABLE), path.open("rb") as file:
        line = mending(_DECODE, file.readline(LONGEST))
        return line.payload if line is not None and line.type == "session_meta" else None
    return None


def _parent(meta: Mapping[str, Any]) -> str | None:
    match meta:
        case {"parent_thread_id": str(parent)} | {
            "source": {"subagent": {"thread_spawn": {"parent_thread_id": str(parent)}}}
        }:
            return parent
    return None


def _role(meta: Mapping[str, Any]) -> str | None:
    match meta:
        case {"source": {"subagent": {"thread_spawn": {"agent_role": str(role)}}}}:
            return role
        case {"source": {"subagent": str(role)}}:
            return role
    return None


def _changes(item: Mapping[str, Any]) -> dict[str, Any]:
    return dict(as_mapping(item.get("changes")))


def _patches(item: Mapping[str, Any]) -> Iterator[FilePatch]:
    for path, change in _changes(item).items():
        match change:
            case {"type": "add", "content": str(text)}:
                yield replace(changed_file(path, None, text, written=True), perhaps_created=True)
            case {"type": "delete", "content": str(text)}:
                yield FilePatch(path=path, before=text, hunks=hunks_between(text, ""))
            case {"type": "update", "unified_diff": str(diff)}:
                moved = as_text(change.get("move_path"))
                hunks = read_unified(diff)
                if hunks is not None or moved is not None:
                    yield FilePatch(path=moved or path, hunks=hunks or (), renamed_from=path if moved else None)
            case _:
                continue


def _output(given: object) -> str:
    return as_text(as_mapping(given).get("content")) or words_of(given)


def _started(text: str) -> str | None:
    told = read_object(text)
    return as_text(told.get("agent_id")) or as_text(told.get("thread_id"))


def _identity(payload: Mapping[str, Any]) -> str | None:
    return as_text(payload.get("id"))
