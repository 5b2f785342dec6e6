"""Cursor's transcripts, as its programs write them: messages and calls. Results are not kept.

So it is not known whether a call was made or refused, and a line is never credited by these files alone: blame names
the call as one that may have written it.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import Struct

from batonpass.adapters.session_files.json_lines import EPOCH, decode_object, take_lines
from batonpass.adapters.session_files.session_place import SessionFiles, entries, spellings
from batonpass.adapters.session_files.session_reader import SessionReader
from batonpass.adapters.session_files.session_values import (
    Record,
    SaidInWords,
    SessionInfo,
    SkippedLine,
    words_to,
)
from batonpass.adapters.session_files.told_values import as_arguments, as_mapping, as_objects, as_text, words_of
from batonpass.adapters.session_files.tool_facts import use_of
from batonpass.adapters.tool_kinds import Coder

_FOLDER: Final = "agent-transcripts"
_LINES: Final = ".jsonl"


class CursorSessions(SessionReader):
    """The transcripts of Cursor, in its own directory or in another."""

    program: ClassVar[str] = Coder.CURSOR
    title: ClassVar[str] = "Cursor"

    def __init__(self, home: Path | None = None) -> None:
        self._home = home or Path.home() / ".cursor"

    @property
    def place(self) -> Path:
        """Return where the transcripts are, one folder for each project."""
        return self._home / "projects"

    def find(self, project: Path) -> Iterator[SessionFiles]:
        """Yield the sessions of a project: its folder is named after the directory, and only after this one."""
        own = {slug_of(spelling) for spelling in spellings(project)}
        for folder in (path for path in entries(self.place) if path.name in own):
            for path in entries(folder / _FOLDER):
                main = path / f"{path.name}{_LINES}" if path.is_dir() else path
                if main.suffix == _LINES and main.is_file():
                    below = entries(path / "subagents") if path.is_dir() else []
                    agents = {one.stem: one for one in below if one.suffix == _LINES}
                    yield SessionFiles(session=main.stem, main=main, agents=agents)

    def read(self, files: SessionFiles, project: Path) -> Iterator[Record | SkippedLine]:
        """Yield messages and calls. The lines have no times, so those of their files are taken."""
        del project  # paths are absolute
        for agent, path in ((None, files.main), *files.agents.items()):
            try:
                at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            except OSError:
                at = EPOCH  # it cannot be read either, which is told below
            yield from take_lines(path, decode_object, _CursorChat(agent=agent, at=at).take)
        yield SessionInfo(id=files.session)


class _CursorChat(Struct, kw_only=True):
    agent: str | None
    at: datetime

    def take(self, line: Mapping[str, Any], place: str) -> Iterator[Record]:
        content = as_mapping(line.get("message")).get("content", line.get("content"))
        text = words_of(content)
        if line.get("role") == "user":
            if text.strip():
                yield words_to(self.agent, self.at, text, place)
            return
        for number, block in enumerate(as_objects(content)):
            match block:
                case {"type": "tool_use", "name": str(tool)}:
                    given = as_arguments(block.get("input"))
                    call = as_text(block.get("id")) or f"{place}.{number}"
                    yield use_of(Coder.CURSOR, tool, given, call=call, agent=self.agent, at=self.at, uuid=place)
        if text.strip():
            yield SaidInWords(agent=self.agent, at=self.at, text=text, uuid=place)


def slug_of(directory: str) -> str:
    """Return the name of the folder of a directory."""
    return "-".join(part for part in "".join(one if one.isalnum() else "-" for one in directory).split("-") if part)
