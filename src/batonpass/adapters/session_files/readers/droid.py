"""Factory droid's sessions: one file of lines for each below `~/.factory/sessions`; a sub-agent's names its caller."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from batonpass.adapters.session_files.json_lines import EPOCH, LONGEST, UNREADABLE, mending, read_time, take_lines
from batonpass.adapters.session_files.patches import changed_file
from batonpass.adapters.session_files.session_place import SessionFiles, entries, is_inside, root_of
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    FilePatch,
    LinkedBy,
    PatchHunk,
    Prompt,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    SubagentLink,
    Task,
    ToolResult,
    ToolUse,
)
from batonpass.adapters.session_files.told_values import as_arguments, as_objects, as_text, read_object, words_of
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder

_OWN_WORDS: Final = ("<system-reminder>",)
_OWN_MESSAGES: Final = ("context-", "task-completion:")
_WRAPPED: Final = re.compile(r"---BEGIN TASK FROM PARENT AGENT---\n(.*)\n---END TASK FROM PARENT AGENT---", re.DOTALL)
_SIGNS: Final = {"unchanged": " ", "removed": "-", "added": "+"}


class _DroidLine(Struct, rename="camel"):
    type: str = ""
    id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    calling_session_id: str | None = None
    calling_tool_use_id: str | None = None
    message: dict[str, Any] = {}


_DECODE: Final = msgspec.json.Decoder(_DroidLine).decode


class DroidSessions(SessionReader):
    """The sessions of Factory droid, in its own directory or in another."""

    program: ClassVar[str] = Coder.DROID
    title: ClassVar[str] = "Factory droid"

    def __init__(self, home: Path | None = None) -> None:
        self._home = home or Path.home() / ".factory"

    @property
    def place(self) -> Path:
        """Return where the sessions are."""
        return self._home / "sessions"

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions of which one worked in a project, each with all that it started."""
        heads = dict(self._heads())
        parents = {name: head.calling_session_id for name, (_, head) in heads.items()}
        families: dict[str, dict[str, Path]] = {}
        for name, (path, _) in heads.items():
            families.setdefault(root_of(name, parents), {})[name] = path
        for root, paths in families.items():
            if any(is_inside(heads[name][1].cwd, project) for name in paths):
                agents = {name: path for name, path in paths.items() if name != root}
                yield SessionFiles(session=root, main=paths[root], agents=agents)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        del project  # paths are absolute
        model = None
        for agent, path in ((None, files.main), *files.agents.items()):
            reading = _DroidChat(agent=agent)
            yield from take_lines(path, _DECODE, reading.take)
            model = model or reading.model
        yield SessionInfo(id=files.session, model=model)

    def _heads(self) -> Iterator[tuple[str, tuple[Path, _DroidLine]]]:
        for folder in entries(self.place):
            for path in entries(folder):
                if path.suffix == ".jsonl" and (head := _head(path)) is not None:
                    yield head.id or path.stem, (path, head)


class _DroidChat(Struct, kw_only=True):
    """One conversation under way."""

    agent: str | None
    model: str | None = None
    at: datetime = EPOCH
    cwd: str | None = None
    uses: dict[str, ToolUse] = field(default_factory=dict)

    def take(self, line: _DroidLine, place: str) -> Iterator[Record]:
        self.at = read_time(line.timestamp) or self.at
        if line.type == "session_start":
            self.cwd = line.cwd
            if self.agent is not None and line.calling_tool_use_id is not None:
                yield SubagentLink(agent=self.agent, tool_use_id=line.calling_tool_use_id, how=LinkedBy.META)
        elif line.type == "message":
            yield from self._message(line.message, line.id or place)

    def _message(self, message: Mapping[str, Any], uuid: str) -> Iterator[Record]:
        content = message.get("content")
        blocks = list(as_objects([{"type": "text", "text": content}] if isinstance(content, str) else content))
        if message.get("role") == "assistant":
            self.model = as_text(message.get("modelId")) or self.model
            yield from self._answered(blocks, uuid)
            return
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield from self._returned(block, uuid)
        if not results and not uuid.startswith(_OWN_MESSAGES):
            yield from self._said(blocks, uuid)

    def _answered(self, blocks: list[dict[str, Any]], uuid: str) -> Iterator[Record]:
        for block in blocks:
            match block:
                case {"type": "tool_use", "id": str(call), "name": str(tool)}:
                    given = as_arguments(block.get("input"))
                    use = use_of(
                        Coder.DROID, tool, given, call=call, agent=self.agent, at=self.at, uuid=uuid, model=self.model
                    )
                    self.uses[call] = use = replace(use, cwd=self.cwd)
                    yield use
        if (text := words_of([block for block in blocks if block.get("type") == "text"])).strip():
            yield SaidInWords(agent=self.agent, at=self.at, text=text, uuid=uuid)

    def _said(self, blocks: list[dict[str, Any]], uuid: str) -> Iterator[Record]:
        texts = [one for block in blocks if (one := as_text(block.get("text"))) and not one.startswith(_OWN_WORDS)]
        if not (text := "\n".join(texts)).strip():
            return
        if self.agent is None:
            yield Prompt(at=self.at, text=text, uuid=uuid)
        else:
            wrapped = _WRAPPED.search(text)
            yield Task(agent=self.agent, at=self.at, text=text if wrapped is None else wrapped[1], uuid=uuid)

    def _returned(self, block: Mapping[str, Any], uuid: str) -> Iterator[Record]:
        call = as_text(block.get("tool_use_id")) or ""
        if (use := self.uses.pop(call, None)) is None:
            return
        text = words_of(block.get("content"))
        ok = block.get("is_error") is not True
        patches = tuple(_patches(use, text)) if ok and use.target is not None else ()
        yield ToolResult(agent=self.agent, tool_use_id=call, ok=ok, at=self.at, uuid=uuid, text=text, patches=patches)


def _patches(use: ToolUse, text: str) -> Iterator[FilePatch]:
    told = read_object(text)
    path = as_text(told.get("file_path")) or use.target or ""
    content = use.input.get("content")
    if told.get("success") is not True:
        return
    if use.tool == "Create" and isinstance(content, str):
        yield replace(changed_file(path, None, content, written=True), perhaps_created=True)
    elif hunks := _hunks(list(as_objects(told.get("diffLines")))):
        yield FilePatch(path=path, hunks=hunks)


def _hunks(lines: list[dict[str, Any]]) -> tuple[PatchHunk, ...] | None:
    """Return the hunks that numbered lines make; None if one of them cannot be read."""
    hunks: list[PatchHunk] = []
    taken: list[str] = []
    start = (1, 1)
    old = new = 1  # the next line of either side
    for line in lines:
        sign, content, numbers = _SIGNS.get(str(line.get("type"))), line.get("content"), line.get("lineNumber")
        if sign is None or not isinstance(content, str) or not isinstance(numbers, dict):
            return None
        # Lines that are not shown are unchanged, so both sides go on by as many lines.
        gap = _number(numbers.get("new")) - new if sign == "+" else _number(numbers.get("old")) - old
        if gap < 0:
            return None
        if gap and taken:
            hunks.append(_hunk(taken, start))
            taken = []
        old, new = old + gap, new + gap
        start = start if taken else (old, new)
        taken.append(f"{sign}{content}")
        old += sign != "+"
        new += sign != "-"
    return (*hunks, _hunk(taken, start)) if taken else tuple(hunks)


def _hunk(lines: list[str], start: tuple[int, int]) -> PatchHunk:
    old, new = start
    has_old, has_new = (any(not line.startswith(other) for line in lines) for other in "+-")
    return PatchHunk(
        old_start=old if has_old else max(old - 1, 0), new_start=new if has_new else max(new - 1, 0), lines=tuple(lines)
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _head(path: Path) -> _DroidLine | None:
    with contextlib.suppress(OSError, *UNREADABLE), path.open("rb") as file:
        line = mending(_DECODE, file.readline(LONGEST))
        return line if line is not None and line.type == "session_start" else None
    return None
