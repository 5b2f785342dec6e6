"""Effects: which files a call changed, found by reading them before and after.

Only the files that the arguments name are read. That is cheap, and true whatever the tool says about itself. Other
changes are found where the whole work tree is compared (`work_tree`).
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
from batonpass.attribution.changes.sides import find_root, hunks_of, printable, repository_above
from batonpass.attribution.git.arrived_commits import HistoryHead, see_history
from batonpass.handoff.files.path_spellings import LONGEST_NAME, Looks, look_below
from batonpass.handoff.tools.arguments import PATHS
from batonpass.model.base.ids import CallId, RunId
from batonpass.store.home import HOME_NAME

_LONGEST_NAME: Final = 1024
_LARGEST_FILE: Final = 2 * 1024 * 1024
_MOST_FILES: Final = 16
_NO_LOOKS: Final[Looks] = {}


class Watched(Struct, frozen=True):
    """The state before a call: the bytes of each file (None: no file), and the last commit."""

    place: Path | str
    files: Mapping[str, bytes | None]
    history: HistoryHead | None = None  # where the history of the repository was

    @property
    def root(self) -> Path:
        """Return the repository of these files, else the directory."""
        return Path(self.place)

    @property
    def before(self) -> Mapping[Path, bytes | None]:
        """Return the files by their paths."""
        return {Path(path): before for path, before in self.files.items()}


NOTHING: Final = Watched(Path(), {})


def watch(arguments: Mapping[str, object], directory: Path | None = None, looks: Looks = _NO_LOOKS) -> Watched:
    """Read the files that the arguments of a call name, if they are in the repository of a directory.

    `looks` are the paths that the checks of this call have followed already, from the current directory.
    """
    # Strings, not Path objects: this runs before every call that may change something.
    place = os.getcwd() if directory is None else os.fspath(directory)  # noqa: PTH109 - as above
    # The system returns the current directory with its links already followed.
    repository = repository_above(place) if directory is None else os.fspath(find_root(directory))
    root = repository or place
    before: dict[str, bytes | None] = {}
    for name in _names_in(arguments):
        if len(before) == _MOST_FILES:
            break
        path = path_inside(name, place, root, looks if directory is None else None)
        if path is None:
            continue
        try:
            before[path] = read_file(path)
        except OSError:
            continue
    history = None if repository is None else see_history(repository)
    return NOTHING if history is None and not before else Watched(root, before, history)


class Edited(Struct, frozen=True):
    """A watched file that has changed: its bytes before and after, None where there was no file."""

    path: str
    before: bytes | None
    after: bytes | None

    def change(self, *, call: CallId, run: RunId, at: datetime) -> FileChange:
        """Return this as the change that a call made."""
        return FileChange(
            call=call,
            run=run,
            at=at,
            path=printable(self.path),
            before=None if self.before is None else digest_of(self.before),
            after=None if self.after is None else digest_of(self.after),
            hunks=hunks_of(self.before, self.after),
        )


def find_edited(watched: Watched) -> Iterator[Edited]:
    """Yield the watched files that have changed."""
    for path, before in watched.files.items():
        try:
            after = read_file(path)
        except OSError:
            continue
        if before != after:
            yield Edited(Path(path).relative_to(watched.root).as_posix(), before, after)


def _names_in(arguments: Mapping[str, object]) -> list[str]:
    """Return texts that may be file names: first those that look like a path, then single words such as Makefile."""
    paths: list[str] = []
    words: list[str] = []
    for value in arguments.values():
        # A foreign object that calls itself a path is not asked: its code may raise anything, and the request is
        # recorded.
        name = fspath(value) if isinstance(value, PurePath) and type(value) in PATHS else value
        if type(name) is not str or not 0 < len(name) <= _LONGEST_NAME or "\n" in name or "\0" in name:
            continue
        if name is not value or _looks_like_a_path(name):
            paths.append(name)
        elif _may_be_a_name(name):
            words.append(name)
    return paths + words


def path_inside(name: str, place: str, root: str, looks: Looks | None = None) -> str | None:
    """Return where a name leads from a directory; None if that is outside the repository, or in our home.

    With `looks` the directory itself has no links: a name that only goes down is followed the short way.
    """
    try:
        look = None
        if looks is not None and name.isascii():
            look = looks.get((place, name)) or look_below(place, name)
        # As it is written, `..` included.
        path = os.path.realpath(os.path.join(place, name)) if look is None else look[0]  # noqa: PTH118 - as above
    except (OSError, ValueError):
        return None  # a lone surrogate is in no path, and links of another user's process cannot be read
    inside = path.removeprefix(f"{root.rstrip('/')}/")
    return path if inside != path and HOME_NAME not in inside.split("/") else None


def _looks_like_a_path(name: str) -> bool:
    return not name.isspace() and "://" not in name and ("/" in name or "." in name) and not name.endswith("/")


def _may_be_a_name(word: str) -> bool:
    # Looking is cheaper than guessing: a word that is no file before and after is no change.
    return "/" not in word and len(word) <= LONGEST_NAME and not any(map(str.isspace, word))


def read_file(path: str) -> bytes | None:
    """Return the bytes of a file; None if there is none. Raises `OSError` for other things, and for a large file."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_FILE:
        raise IsADirectoryError(path)
    with open(path, "rb") as file:  # noqa: PTH123 - a text is given
        return file.read()
