"""Commits that come into a work tree's history while a call is made: made by it, or pulled, merged or checked out.

Looked at before every call that may change something, so a look reads three small files and starts no program. Git is
asked only if something moved. Both the head and its log are looked at: who commits on a branch and goes back leaves the
head where it was, and who switches the log off moves the head.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.attribution.git import GitSilentError, Repository

MOST_COMMITS: Final = 200  # of one call: what is signed must not grow with somebody's history

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NOBODY: Final = re.compile(r"0+")
_MOST_LOG: Final = 1024 * 1024
_LINK: Final = "gitdir: "
_REF: Final = "ref: "


class History(Struct, frozen=True):
    """Where the history of a work tree stands."""

    root: Path | str
    head: str | None  # None: nothing is committed, or nobody can tell
    logged: int  # how long the log of its heads is, in bytes


def see_history(root: Path | str) -> History | None:
    """Return where the history of a work tree stands; None if it has none."""
    directory = _directory_of(os.fspath(root))
    return None if directory is None else History(root, _head(directory), _size(directory))


def find_arrived(before: History | None, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the commits that came since, the latest first, and of more than a call may name, the latest."""
    if before is None or (directory := _directory_of(os.fspath(before.root))) is None:
        return ()
    passed = _logged(directory, before.logged)
    head = _head(directory)
    reached = [name for name in dict.fromkeys((head, *passed)) if name is not None and name != before.head]
    if not reached:
        return ()
    repository = Repository(Path(before.root), os.environ if environment is None else environment)
    try:
        return tuple(repository.reachable(reached, without=before.head, most=MOST_COMMITS))
    except GitSilentError:
        return tuple(reached[:MOST_COMMITS])  # fewer than there are, and all that is known


def git_directory(root: Path) -> Path | None:
    """Return where git keeps what belongs to a work tree; in a linked one, a file says where."""
    found = _directory_of(os.fspath(root))
    return None if found is None else Path(found)


def _directory_of(root: str) -> str | None:
    # Texts, not paths: this is asked before every call that may change something, and after it.
    place = f"{root.rstrip('/')}/.git"
    try:
        found = os.stat(place)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(found.st_mode):
        return place
    linked = _read(place)
    return os.path.join(root, linked.removeprefix(_LINK).strip()) if linked.startswith(_LINK) else None  # noqa: PTH118 - as above


def _head(directory: str) -> str | None:
    said = _read(f"{directory}/HEAD").strip()
    if not said.startswith(_REF):
        return _commit(said)
    name = said.removeprefix(_REF)
    shared = _read(f"{directory}/commondir").strip()
    places = (directory, os.path.join(directory, shared)) if shared else (directory,)  # noqa: PTH118 - as above
    for place in places:
        if (found := _commit(_read(f"{place}/{name}").strip())) is not None:
            return found
    for place in places:
        for line in _read(f"{place}/packed-refs").splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return _commit(commit)
    return None


def _size(directory: str) -> int:
    try:
        return os.stat(f"{directory}/logs/HEAD").st_size  # noqa: PTH116 - as above
    except OSError:
        return 0


def _logged(directory: str, start: int) -> list[str]:
    """Return the commits that the head came to since its log was so long, the latest first."""
    try:
        with open(f"{directory}/logs/HEAD", "rb") as log:  # noqa: PTH123 - as above
            size = log.seek(0, os.SEEK_END)
            # A log that is shorter than it was has been written anew: all of it is new.
            log.seek(max(start if start <= size else 0, size - _MOST_LOG))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    if not lines:
        return []
    found = (_commit(line.partition(" ")[2].partition(" ")[0]) for line in reversed(lines))
    return [commit for commit in found if commit is not None]


def _commit(said: str) -> str | None:
    return said if _COMMIT.fullmatch(said) and not _NOBODY.fullmatch(said) else None


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return file.read().decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
