"""Effects: which files a call changed, seen by looking at them before and after.

A call is watched at the files that its arguments name: that is cheap, and true whatever the tool says of itself. What
else it changes is found where the whole work tree is compared (files.py).
"""

import os
import stat
from collections.abc import Iterator, Mapping
from datetime import datetime
from os import fspath
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from batonpass.attribution.changes.change import FileChange, digest_of
from batonpass.attribution.changes.sides import find_root, hunks_of, repository_above
from batonpass.attribution.git.arrived_commits import HistoryHead, see_history
from batonpass.handoff.files.path_spellings import LONGEST_NAME, look_below
from batonpass.handoff.tools.arguments import PATHS
from batonpass.model.base.ids import CallId, RunId
from batonpass.store.home import HOME_NAME

_LONGEST_NAME: Final = 1024
_LARGEST_FILE: Final = 2 * 1024 * 1024
_MOST_FILES: Final = 16


class Watched(Struct, frozen=True):
    """What is there before a call: of files their bytes, or None where there was no file; of commits the last."""

    place: Path | str
    files: Mapping[str, bytes | None]
    history: HistoryHead | None = None  # where the history of the repository stood

    @property
    def root(self) -> Path:
        """Return the repository in which they lie, else the directory."""
        return Path(self.place)

    @property
    def before(self) -> Mapping[Path, bytes | None]:
        """Return the files by their paths."""
        return {Path(path): before for path, before in self.files.items()}


NOTHING: Final = Watched(Path(), {})


def watch(arguments: Mapping[str, object], directory: Path | None = None) -> Watched:
    """Look at the files that the arguments of a call name, as far as they lie in the repository of a directory."""
    # Texts, not paths: this is asked before every call that may change something.
    place = os.getcwd() if directory is None else os.fspath(directory)  # noqa: PTH109 - as above
    # Where this process stands the system says without links.
    repository = repository_above(place) if directory is None else os.fspath(find_root(directory))
    root = repository or place
    before: dict[str, bytes | None] = {}
    for name in _names_in(arguments):
        if len(before) == _MOST_FILES:
            break
        path = _find(name, place, root, straight=directory is None)
        if path is None:
            continue
        try:
            before[path] = _read(path)
        except OSError:
            continue
    history = None if repository is None else see_history(repository)
    return NOTHING if history is None and not before else Watched(root, before, history)


class Edited(Struct, frozen=True):
    """What became of a watched file: its bytes before and after, None where there was no file."""

    path: str
    before: bytes | None
    after: bytes | None

    def change(self, *, call: CallId, run: RunId, at: datetime) -> FileChange:
        """Return it as what a call changed."""
        return FileChange(
            call=call,
            run=run,
            at=at,
            path=self.path,
            before=None if self.before is None else digest_of(self.before),
            after=None if self.after is None else digest_of(self.after),
            hunks=hunks_of(self.before, self.after),
        )


def find_edited(watched: Watched) -> Iterator[Edited]:
    """Yield the watched files that are not as they were."""
    for path, before in watched.files.items():
        try:
            after = _read(path)
        except OSError:
            continue
        if before != after:
            yield Edited(Path(path).relative_to(watched.root).as_posix(), before, after)


def _names_in(arguments: Mapping[str, object]) -> list[str]:
    """Return what may be files: first what looks like a path, then words that may be a name, as Makefile is."""
    paths: list[str] = []
    words: list[str] = []
    for value in arguments.values():
        # An object that calls itself a path is asked nothing here: the request is written, and it may raise anything.
        name = fspath(value) if isinstance(value, PurePath) and type(value) in PATHS else value
        if type(name) is not str or not 0 < len(name) <= _LONGEST_NAME or "\n" in name or "\0" in name:
            continue
        if name is not value or _looks_like_a_path(name):
            paths.append(name)
        elif _may_be_a_name(name):
            words.append(name)
    return paths + words


def _find(name: str, place: str, root: str, *, straight: bool) -> str | None:
    """Return where a name leads from a place; None if that is not in the repository, or is ours.

    Where the place itself is known without links, a name that goes only down is followed the short way.
    """
    try:
        look = look_below(place, name) if straight and name.isascii() else None
        # As it is written, `..` included.
        path = os.path.realpath(os.path.join(place, name)) if look is None else look[0]  # noqa: PTH118 - as above
    except (OSError, ValueError):
        return None  # half a character has no place in a path, and the links of another's process are not ours to read
    inside = path.removeprefix(f"{root.rstrip('/')}/")
    return path if inside != path and HOME_NAME not in inside.split("/") else None


def _looks_like_a_path(name: str) -> bool:
    return not name.isspace() and "://" not in name and ("/" in name or "." in name) and not name.endswith("/")


def _may_be_a_name(word: str) -> bool:
    # Looking costs less than a guess: a word that is no file, before and after, is no change.
    return "/" not in word and len(word) <= LONGEST_NAME and not any(map(str.isspace, word))


def _read(path: str) -> bytes | None:
    """Return a file's bytes; None if there is none. Raises `OSError` for what is no file, or too large to look at."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE:
        raise IsADirectoryError(path)
    with open(path, "rb") as file:  # noqa: PTH123 - a text is given
        return file.read()
