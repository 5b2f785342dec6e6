"""Cline's sessions: one folder for each below `~/.cline/data/sessions`, with a file of all messages for each agent."""

import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field

from batonpass.adapters.session_files.json_lines import EPOCH, UNREADABLE, read_milliseconds
from batonpass.adapters.session_files.patches import apply_hunks, changed_file, split_lines, with_context
from batonpass.adapters.session_files.session_place import SessionFiles, entries, is_inside
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    FilePatch,
    PatchHunk,
    Prompt,
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    Task,
    ToolResult,
    ToolUse,
)
from batonpass.adapters.session_files.told_values import (
    as_arguments,
    as_mapping,
    as_objects,
    as_text,
    read_object,
    words_of,
)
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder

_MESSAGES: Final = ".messages.json"
_LARGEST: Final = 256 * 1024 * 1024  # a file is one value, and read as a whole
_LARGEST_HEAD: Final = 1024 * 1024
_INPUT: Final = re.compile(r'<user_input mode="[^"]*">(.*)</user_input>', re.DOTALL)
_NUMBERED: Final = re.compile(r"([-+])(\d{1,9}): (.*)")
_SHOWN: Final = re.compile(r" *(\d{1,9}) \| (.*)")
_CREATED: Final = "File created successfully"
_FENCE: Final = "```diff\n"


class ClineSessions(SessionReader):
    """The sessions of Cline, in its own directory or in another."""

    program: ClassVar[str] = Coder.CLINE
    title: ClassVar[str] = "Cline"

    def __init__(self, home: Path | None = None) -> None:
        home = home or Path(os.environ.get("CLINE_DIR") or Path.home() / ".cline")
        self._data = Path(os.environ.get("CLINE_DATA_DIR") or home / "data")

    @property
    def place(self) -> Path:
        """Return where the sessions are."""
        return self._data / "sessions"

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions that worked in a project."""
        for folder in entries(self.place):
            head = _read(folder / f"{folder.name}.json", _LARGEST_HEAD)
            if head is not None and any(is_inside(head.get(name), project) for name in ("cwd", "workspace_root")):
                main = folder / f"{folder.name}{_MESSAGES}"
                others = (path for path in entries(folder) if path.name.endswith(_MESSAGES) and path != main)
                agents = {path.name.removesuffix(_MESSAGES): path for path in others}
                yield SessionFiles(session=folder.name, main=main, agents=agents)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield all records of a session."""
        del project  # paths are absolute
        info = SessionInfo(id=files.session)
        for agent, path in ((None, files.main), *files.agents.items()):
            reading = _ClineChat(agent=agent)
            told = _read(path, _LARGEST)
            if told is None:
                yield SkippedLine(path=path, line=0, what=f"is not JSON, or longer than {_LARGEST >> 20} MiB")
                continue
            for number, message in enumerate(as_objects(told.get("messages"))):
                yield from reading.take(message, f"{path.name}:{number}")
            if agent is None:
                version = as_text(as_mapping(told.get("origin")).get("version"))
                info = SessionInfo(id=files.session, version=version, model=reading.model)
        yield info


class _ClineChat(Struct, kw_only=True):
    """One conversation under way."""

    agent: str | None
    model: str | None = None
    at: datetime = EPOCH
    uses: dict[str, ToolUse] = field(default_factory=dict)
    texts: dict[str, list[str]] = field(default_factory=dict)  # the lines of files as they were last shown or written

    def take(self, message: Mapping[str, Any], place: str) -> Iterator[Record]:
        self.at = read_milliseconds(message.get("ts")) or self.at
        uuid = as_text(message.get("id")) or place
        content = message.get("content")
        blocks = list(as_objects([{"type": "text", "text": content}] if isinstance(content, str) else content))
        if message.get("role") == "assistant":
            self.model = as_text(as_mapping(message.get("modelInfo")).get("id")) or self.model
            yield from self._answered(blocks, uuid)
            return
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            yield from self._returned(block, uuid)
        if not results and (text := words_of(blocks)).strip():
            yield self._said(text, uuid)

    def _said(self, text: str, uuid: str) -> Record:
        if self.agent is not None:
            return Task(agent=self.agent, at=self.at, text=text, uuid=uuid)
        wrapped = _INPUT.fullmatch(text.strip())
        return Prompt(at=self.at, text=text if wrapped is None else wrapped[1], uuid=uuid)

    def _answered(self, blocks: list[dict[str, Any]], uuid: str) -> Iterator[Record]:
        for block in blocks:
            match block:
                case {"type": "tool_use", "id": str(call), "name": str(tool)}:
                    given = as_arguments(block.get("input"))
                    use = use_of(
                        Coder.CLINE, tool, given, call=call, agent=self.agent, at=self.at, uuid=uuid, model=self.model
                    )
                    self.uses[call] = use
                    yield use
        if (text := words_of([block for block in blocks if block.get("type") == "text"])).strip():
            yield SaidInWords(agent=self.agent, at=self.at, text=text, uuid=uuid)

    def _returned(self, block: Mapping[str, Any], uuid: str) -> Iterator[Record]:
        call = as_text(block.get("tool_use_id")) or ""
        if (use := self.uses.pop(call, None)) is None:
            return
        content = block.get("content")
        told: list[Mapping[str, Any]] = [read_object(content)] if isinstance(content, str) else [*as_objects(content)]
        ok = block.get("is_error") is not True and all(one.get("success") is not False for one in told)
        text = "\n".join(_told(one) for one in told) if any(told) else words_of(content)
        patches = tuple(self._patches(use, text)) if ok and use.target is not None else ()
        if use.reads and ok:
            self._learn(told)
        yield ToolResult(agent=self.agent, tool_use_id=call, ok=ok, at=self.at, uuid=uuid, text=text, patches=patches)

    def _learn(self, told: list[Mapping[str, Any]]) -> None:
        for one in told:
            path, shown = as_text(one.get("query")), [_SHOWN.fullmatch(line) for line in _told(one).split("\n")]
            numbers = [int(line[1]) for line in shown if line is not None]
            if path is not None and numbers == list(range(1, len(shown) + 1)):
                self.texts[path] = [line[2] for line in shown if line is not None]

    def _patches(self, use: ToolUse, text: str) -> Iterator[FilePatch]:
        path, new = use.target or "", use.input.get("new_text")
        if text.startswith(_CREATED) and isinstance(new, str):
            self.texts[path] = split_lines(new)
            yield changed_file(path, None, new, written=True)
            return
        known = self.texts.pop(path, [])
        hunk = _hunk(text.partition(_FENCE)[2].rpartition("\n```")[0].split("\n"))
        if hunk is None:
            return
        # The program shows the number of a line and not what is around it. What it showed before helps, if it fits.
        after = apply_hunks("\n".join(known), [hunk])
        if after is not None:
            self.texts[path] = after.split("\n")
            (hunk,) = with_context([hunk], known)
        yield FilePatch(path=path, hunks=(hunk,))


def _told(one: Mapping[str, Any]) -> str:
    return as_text(one.get("result")) or as_text(one.get("error")) or as_text(one.get("text")) or ""


def _hunk(lines: list[str]) -> PatchHunk | None:
    """Return the hunk that numbered lines show: all that were removed, then all that were added, without a gap."""
    found = [_NUMBERED.fullmatch(line) for line in lines]
    sides: dict[str, list[tuple[int, str]]] = {"-": [], "+": []}
    for one in found:
        if one is None or (one[1] == "-" and sides["+"]):
            return None
        sides[one[1]].append((int(one[2]), one[3]))
    if not all(_is_gapless([number for number, _ in side]) for side in sides.values()):
        return None
    starts = {side[0][0] for side in sides.values() if side}
    if len(starts) != 1:
        return None  # it begins with the first line that differs, which has one number
    (start,) = starts
    shown = tuple(f"{sign}{text}" for sign, side in sides.items() for _, text in side)
    # A side without lines names the line before it.
    return PatchHunk(old_start=start - (not sides["-"]), new_start=start - (not sides["+"]), lines=shown)


def _is_gapless(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True


def _read(path: Path, largest: int) -> Mapping[str, Any] | None:
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
        found = msgspec.json.decode(data) if len(data) <= largest else None
    except (OSError, *UNREADABLE):
        return None
    return found if isinstance(found, dict) else None
