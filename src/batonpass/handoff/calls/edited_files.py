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

from batonpass.attribution.arrived_commits import History, see_history
from batonpass.attribution.change import FileChange, digest_of
from batonpass.attribution.sides import find_repository, find_root, hunks_of
from batonpass.handoff.calls.arguments import PATHS
from batonpass.model.ids import CallId, RunId
from batonpass.store.home import HOME_NAME

_LONGEST_NAME: Final = 1024
_LONGEST_WORD: Final = 255  # no file system gives a file a longer name
_LARGEST_FILE: Final = 2 * 1024 * 1024
_MOST_FILES: Final = 16


class Watched(Struct, frozen=True):
    """What is there before a call: of files their bytes, or None where there was no file; of commits the last."""

    root: Path
    before: Mapping[Path, bytes | None]
    history: History | None = None  # where the history of the repository stood


NOTHING: Final = Watched(Path(), {})


def watch(arguments: Mapping[str, object], directory: Path | None = None) -> Watched:
    """Look at the files that the arguments of a call name, as far as they lie in the repository of a directory."""
    place = directory or Path.cwd()
    # Where this process stands the system says without links.
    root = find_root(place) if directory is not None else find_repository(place) or place
    before: dict[Path, bytes | None] = {}
    for path in _named(arguments, place, root):
        if len(before) == _MOST_FILES:
            break
        try:
            before[path] = _read(path)
        except OSError:
            continue
    history = see_history(root)
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
    for path, before in watched.before.items():
        try:
            after = _read(path)
        except OSError:
            continue
        if before != after:
            yield Edited(path.relative_to(watched.root).as_posix(), before, after)


def _named(arguments: Mapping[str, object], place: Path, root: Path) -> Iterator[Path]:
    """Yield what may be files: first what looks like a path, then words that may be the name of one, as Makefile is."""
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
    for name in (*paths, *words):
        try:
            path = os.path.realpath(os.path.join(place, name))  # noqa: PTH118 - as it is written, `..` included
        except (OSError, ValueError):
            continue  # half a character has no place in a path, and the links of another's process are not ours to read
        inside = path.removeprefix(f"{str(root).rstrip('/')}/")
        if inside != path and HOME_NAME not in inside.split("/"):
            yield Path(path)


def _looks_like_a_path(name: str) -> bool:
    return not name.isspace() and "://" not in name and ("/" in name or "." in name) and not name.endswith("/")


def _may_be_a_name(word: str) -> bool:
    # Looking costs less than a guess: a word that is no file, before and after, is no change.
    return "/" not in word and len(word) <= _LONGEST_WORD and not any(map(str.isspace, word))


def _read(path: Path) -> bytes | None:
    """Return a file's bytes; None if there is none. Raises `OSError` for what is no file, or too large to look at."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE:
        raise IsADirectoryError(path)
    return path.read_bytes()
