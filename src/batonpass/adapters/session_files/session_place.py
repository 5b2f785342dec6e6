"""Where a session is kept, and questions that its files answer before they are parsed.

Whole files are searched for a few bytes, so that only sessions that matter are parsed.
"""

import json
import mmap
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct, field

# JSON never escapes these characters. Every other one may be escaped, in more than one way.
_PLAIN: Final = re.compile(r"[A-Za-z0-9 ._+@,()=-]+")


class SessionFiles(Struct, frozen=True, kw_only=True):
    """The files of one session."""

    session: str
    main: Path
    agents: Mapping[str, Path] = field(default_factory=dict)  # by the sub-agent's id
    extent: Mapping[str, int] | None = None  # in a database: how far the session goes, and its size as "bytes"

    @property
    def files(self) -> tuple[Path, ...]:
        """Return all files, the main conversation first."""
        return (self.main, *self.agents.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Return how far the session goes now: the size of each file in bytes, 0 for one that cannot be read."""
        return dict(self.extent) if self.extent is not None else {path.name: _size(path) for path in self.files}

    @property
    def bytes(self) -> int:
        """Return how much there is to read."""
        return sum(self.sizes.values()) if self.extent is None else self.extent.get("bytes", 0)


def mentioning(names: Iterable[str]) -> Callable[[SessionFiles], bool]:
    """Return a test whether a session may mention one of these files. It never misses one that does.

    Paths in sessions are absolute, relative or parts of commands; they have the file name in common.
    """
    wanted = {certain_part(PurePosixPath(name).name) for name in names}

    def may_mention(files: SessionFiles) -> bool:
        # An unreadable file counts: the reader will report why.
        return any(search(path, lambda text: _has(text, wanted), unreadable=True) for path in files.files)

    return may_mention


def relative_path(path: str, project: Path) -> str:
    """Return a path relative to the project, with `/`; unchanged if it is elsewhere."""
    for spelling in spellings(project):
        if path.startswith(f"{spelling}/"):
            inside = os.path.normpath(path.removeprefix(spelling).lstrip("/"))
            return path if inside == ".." or inside.startswith("../") else inside
    return path


def spellings(project: Path) -> list[str]:
    """Return the ways in which a directory may be named: as it was given, and without links."""
    return list(dict.fromkeys((str(project.absolute()), str(project.resolve()))))


def is_inside(directory: object, project: Path) -> bool:
    """Return whether a directory is a project or below it."""
    if not isinstance(directory, str):
        return False
    return any(directory == one or directory.startswith(f"{one}/") for one in spellings(project))


def worked_in(path: Path, directories: list[str]) -> bool:
    """Return whether a line was written in one of these directories or below; "" is any directory."""
    spelled = (re.escape(json.dumps(name, ensure_ascii=False)[:-1]) + ('["/]' if name else "") for name in directories)
    wanted = re.compile(f'"cwd": ?(?:{"|".join(spelled)})'.encode())
    return search(path, lambda text: wanted.search(text) is not None, unreadable=False)


def root_of(name: str, parents: Mapping[str, str | None]) -> str:
    """Return the session that started all above this one; one whose starter is gone is its own.

    Sessions that name each other in a circle have one root, whichever of them is asked about.
    """
    seen = [name]
    while (parent := parents.get(seen[-1])) is not None and parent in parents:
        if parent in seen:
            return min(seen[seen.index(parent) :])
        seen.append(parent)
    return seen[-1]


def entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, by name; none if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def certain_part(name: str) -> bytes:
    """Return the longest part of a name that JSON cannot have escaped."""
    return max(_PLAIN.findall(name), key=len, default="").encode()


def search(path: Path, has: Callable[[mmap.mmap], bool], *, unreadable: bool) -> bool:
    """Return the result of a test of a file's bytes, and `unreadable` if they cannot be read."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                return has(text)
    except OSError:
        return unreadable


def _has(text: mmap.mmap, wanted: Iterable[bytes]) -> bool:
    return any(text.find(part) >= 0 for part in wanted)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
