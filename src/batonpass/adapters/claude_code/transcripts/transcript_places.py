"""Finds transcripts: one folder per working directory, one file per session, one per sub-agent.

Whole files are searched for a few bytes, so that only transcripts that matter are parsed.
"""

import json
import mmap
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

_LONGEST_SLUG: Final = 200
_ODD: Final = re.compile(r"[^a-zA-Z0-9]")
_AGENT: Final = re.compile(r"agent-(.+)\.jsonl")
# JSON never escapes these characters. Every other one may be escaped, in more than one way.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 ._+@,()=-]+")


class Transcript(Struct, frozen=True, kw_only=True):
    """The files of one session."""

    session: str
    main: Path
    agents: Mapping[str, Path]  # by the sub-agent's id

    @property
    def files(self) -> tuple[Path, ...]:
        """Return all files, the main conversation first."""
        return (self.main, *self.agents.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Return the present size of each file in bytes, by name; 0 for one that cannot be read."""
        return {path.name: _size(path) for path in self.files}


def config_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return Claude Code's own directory: `CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    given = (os.environ if environment is None else environment).get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def slug_of(directory: str) -> str:
    """Return the name of the folder with the transcripts of a working directory.

    Beyond 200 characters the program appends a hash. It is left out here, so such a name is only a prefix.
    """
    # The program counts UTF-16 units, where a character beyond the basic plane is two.
    units = "".join("--" if ord(character) > 0xFFFF else character for character in directory)  # noqa: PLR2004 - the end of the basic plane
    return _ODD.sub("-", units)[:_LONGEST_SLUG]


def find_transcripts(project: Path, *, config: Path | None = None) -> Iterator[Transcript]:
    """Yield the sessions that worked in a project's directory or below it, in the order of their names.

    Transcripts in the project's own folder are found by its name; all others are searched for the directory.
    """
    spellings = _spellings(project)
    own = {slug_of(spelling) for spelling in spellings}
    folders = (config or config_directory()) / "projects"
    for folder in sorted(path for path in _entries(folders) if path.is_dir()):
        for main in sorted(path for path in _entries(folder) if path.suffix == ".jsonl" and path.is_file()):
            if _AGENT.fullmatch(main.name):
                continue  # some versions kept sub-agents here; they are found with their session
            if _worked_in(main, spellings) or (folder.name[:_LONGEST_SLUG] in own and not _worked_in(main, [""])):
                yield Transcript(session=main.stem, main=main, agents=_agents(folder, main.stem))


def mentioning(names: Iterable[str]) -> Callable[[Transcript], bool]:
    """Return a test whether a session may mention one of these files. It never misses one that does.

    Paths in transcripts are absolute, relative or parts of commands; they have the file name in common.
    """
    wanted = {_certain_part(PurePosixPath(name).name) for name in names}

    def may_mention(transcript: Transcript) -> bool:
        # An unreadable file counts: the reader will report why.
        return any(_search(path, lambda text: _has(text, wanted), unreadable=True) for path in transcript.files)

    return may_mention


def relative_path(path: str, project: Path) -> str:
    """Return a path relative to the project, with `/`; unchanged if it is elsewhere."""
    for spelling in _spellings(project):
        if path.startswith(f"{spelling}/"):
            inside = os.path.normpath(path.removeprefix(spelling).lstrip("/"))
            return path if inside == ".." or inside.startswith("../") else inside
    return path


def _spellings(project: Path) -> list[str]:
    return list(dict.fromkeys((str(project.absolute()), str(project.resolve()))))


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _agents(folder: Path, session: str) -> dict[str, Path]:
    found: dict[str, Path] = {}
    # Workflows put their sub-agents into nested folders of any depth.
    for path in sorted((folder / session / "subagents").rglob("agent-*.jsonl")):
        if (match := _AGENT.fullmatch(path.name)) and path.is_file():
            found.setdefault(match[1], path)
    return found


def _worked_in(path: Path, directories: list[str]) -> bool:
    """Return whether a line was written in one of these directories or below; "" is any directory."""
    spelled = (re.escape(json.dumps(name, ensure_ascii=False)[:-1]) + ('["/]' if name else "") for name in directories)
    wanted = re.compile(f'"cwd": ?(?:{"|".join(spelled)})'.encode())
    return _search(path, lambda text: wanted.search(text) is not None, unreadable=False)


def _certain_part(name: str) -> bytes:
    """Return the longest part of a name that JSON cannot have escaped."""
    return max(_PLAIN.findall(name), key=len, default="").encode()


def _has(text: mmap.mmap, wanted: Iterable[bytes]) -> bool:
    return any(text.find(part) >= 0 for part in wanted)


def _search(path: Path, has: Callable[[mmap.mmap], bool], *, unreadable: bool) -> bool:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                return has(text)
    except OSError:
        return unreadable
