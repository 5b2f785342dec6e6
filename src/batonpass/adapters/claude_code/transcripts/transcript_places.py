"""Where transcripts lie: one folder for each working directory, one file for each session, one for each sub-agent."""

import json
import mmap
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

_LONGEST_SLUG: Final = 200
_ODD: Final = re.compile(r"[^a-zA-Z0-9]")
_AGENT: Final = re.compile(r"agent-(.+)\.jsonl")


class Transcript(Struct, frozen=True, kw_only=True):
    """The files of one session."""

    session: str
    main: Path
    agents: Mapping[str, Path]  # by the sub-agent's id

    @property
    def files(self) -> tuple[Path, ...]:
        """Return all files, the main conversation first."""
        return (self.main, *self.agents.values())


def config_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return where Claude Code keeps what it keeps: `CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    given = (os.environ if environment is None else environment).get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def slug_of(directory: str) -> str:
    """Return the name of the folder that holds the transcripts of a working directory.

    Beyond 200 characters the program appends a hash, which is left out here: such a name is only a beginning.
    """
    # It counts in UTF-16, where what lies beyond the basic plane is two units.
    units = "".join("--" if ord(character) > 0xFFFF else character for character in directory)  # noqa: PLR2004 - the end of the basic plane
    return _ODD.sub("-", units)[:_LONGEST_SLUG]


def find_transcripts(project: Path, *, config: Path | None = None) -> Iterator[Transcript]:
    """Yield the sessions that worked in a project's directory or below it, in the order of their names.

    Those in the project's own folder come by its name; the others are looked through for the directory.
    """
    spellings = _spellings(project)
    own = {slug_of(spelling) for spelling in spellings}
    folders = (config or config_directory()) / "projects"
    for folder in sorted(path for path in _entries(folders) if path.is_dir()):
        for main in sorted(path for path in _entries(folder) if path.suffix == ".jsonl" and path.is_file()):
            if _AGENT.fullmatch(main.name):
                continue  # a version in between kept sub-agents here; they are found with their session
            found = _agents(folder, main.stem)
            if _mentions(main, spellings) or (folder.name[:_LONGEST_SLUG] in own and not _mentions(main, [""])):
                yield Transcript(session=main.stem, main=main, agents=found)


def relative_path(path: str, project: Path) -> str:
    """Return a path as seen from the project, with `/`; as it is if it lies elsewhere."""
    for spelling in _spellings(project):
        if path.startswith(f"{spelling}/"):
            inside = os.path.normpath(path.removeprefix(spelling).lstrip("/"))
            return path if inside == ".." or inside.startswith("../") else inside
    return path


def is_inside(directory: str | None, project: Path) -> bool:
    """Return whether a working directory is the project's or below it."""
    if directory is None:
        return False
    return any(directory == spelling or directory.startswith(f"{spelling}/") for spelling in _spellings(project))


def _spellings(project: Path) -> list[str]:
    return list(dict.fromkeys((str(project.absolute()), str(project.resolve()))))


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _agents(folder: Path, session: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    # Workflows put their sub-agents into folders below; nobody promises how deep.
    for path in sorted((folder / session / "subagents").rglob("agent-*.jsonl")):
        if (match := _AGENT.fullmatch(path.name)) and path.is_file():
            found.setdefault(match[1], path)
    return found


def _mentions(path: Path, directories: list[str]) -> bool:
    """Return whether a line says that it was written in one of these directories or below; "" is any."""
    wanted = [
        b'"cwd":' + space + json.dumps(name, ensure_ascii=False)[:-1].encode()
        for name in directories
        for space in (b"", b" ")
    ]
    try:
        if path.stat().st_size == 0:
            return False
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return any(_found(text, start) for start in wanted)
    except OSError:
        return False


def _found(text: mmap.mmap, start: bytes) -> bool:
    at = text.find(start)
    while at >= 0:
        if text[at + len(start) : at + len(start) + 1] in {b'"', b"/"} or start.endswith(b'"'):
            return True
        at = text.find(start, at + 1)
    return False
