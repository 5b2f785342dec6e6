"""Finds commits that entered the history during a call: made by it, or pulled, merged or checked out.

The history is inspected before and after every call that may change files, so this reads a few small files and starts
no program. Git is asked only if something moved. Both the head and its log are compared: a commit on another branch may
leave the head where it was, and with the log switched off only the head moves.
"""

import os
import re
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from batonpass.attribution.git.file_git import GitSilentError, Repository

MOST_COMMITS: Final = 200  # per call: a signed receipt must not grow with the history

_COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NOBODY: Final = re.compile(r"0+")
_MOST_LOG: Final = 1024 * 1024
_LINK: Final = b"gitdir: "
_REF: Final = b"ref: "
_LONGEST: Final = 8 * 1024  # bytes of a file that names a commit, a branch or a path
_ANY_LENGTH: Final = 1 << 62
_REFS: Final = "refs/"
# References that a linked work tree has for itself; all others belong to the repository.
_OWN_REFS: Final = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")


class HistoryHead(Struct, frozen=True):
    """The state of a work tree's history."""

    root: Path | str
    head: str | None  # None: nothing is committed, or it cannot be read
    logged: int  # the length of the head's log, in bytes
    shared: tuple[str, bytes] = ("", b"")  # the git directory, and the one that it shares, as git wrote it


def see_history(root: Path | str) -> HistoryHead | None:
    """Return the state of a work tree's history; None if it has none."""
    found = _find_head(os.fspath(root))
    if found is None:
        return None
    directory, said = found
    shared = _read(f"{directory}/commondir")
    return HistoryHead(root, _head(directory, said, shared), _size(directory), (directory, shared))


def find_arrived(before: HistoryHead | None, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the commits that arrived since, latest first, up to the limit for one call."""
    if before is None or (found := _find_head(os.fspath(before.root))) is None:
        return ()
    directory, said = found
    passed = _logged(directory, before.logged)
    # Git names that directory once, when it makes a linked work tree.
    known, shared = before.shared
    head = _head(directory, said, shared if directory == known else _read(f"{directory}/commondir"))
    reached = [name for name in dict.fromkeys((head, *passed)) if name is not None and name != before.head]
    if not reached:
        return ()
    repository = Repository(Path(before.root), os.environ if environment is None else environment)
    try:
        return tuple(repository.reachable(reached, without=before.head, most=MOST_COMMITS))
    except GitSilentError:
        return tuple(reached[:MOST_COMMITS])  # incomplete, but all that is known


def git_directory(root: Path) -> Path | None:
    """Return the git directory of a work tree; in a linked work tree a file names it."""
    found = _directory_of(os.fspath(root))
    return None if found is None else Path(found)


def _find_head(root: str) -> tuple[str, bytes] | None:
    """Return the git directory of a work tree and the text of its head; None if it has none."""
    # Where the head can be read as in most work trees, nobody has to ask what is there.
    place = f"{root.rstrip('/')}/.git"
    said = _read(f"{place}/HEAD")
    if said:
        return place, said
    directory = _directory_of(root)
    return None if directory is None else (directory, _read(f"{directory}/HEAD"))


def _directory_of(root: str) -> str | None:
    # Strings instead of paths, for speed: this runs around every call that may change files.
    place = f"{root.rstrip('/')}/.git"
    try:
        found = os.stat(place)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(found.st_mode):
        return place
    return _linked(root, _read(place))


# The content of these files hardly changes from call to call, so results are cached by content.
@lru_cache(maxsize=64)
def _linked(root: str, said: bytes) -> str | None:
    """Return the git directory that the `.git` file of a linked work tree names."""
    return os.path.join(root, _text(said[len(_LINK) :])) if said.startswith(_LINK) else None  # noqa: PTH118 - as above


def _head(directory: str, said: bytes, shared: bytes) -> str | None:
    if not said.startswith(_REF):
        return _commit(said)
    ref, place = _branch(directory, said, shared)
    if (found := _commit(_read(f"{place}/{ref}"))) is not None:
        return found
    for line in _read(f"{place}/packed-refs", _ANY_LENGTH).splitlines():
        commit, _, packed = line.partition(b" ")
        if _text(packed) == ref:
            return _commit(commit)
    return None


@lru_cache(maxsize=64)
def _branch(directory: str, said: bytes, shared: bytes) -> tuple[str, str]:
    """Return the branch that a head points to, and the directory where git stores it."""
    ref = _text(said[len(_REF) :])
    # A shared reference is read from the common directory only.
    is_shared = shared and ref.startswith(_REFS) and not ref.startswith(_OWN_REFS)
    return ref, os.path.join(directory, _text(shared)) if is_shared else directory  # noqa: PTH118 - as above


def _size(directory: str) -> int:
    try:
        return os.stat(f"{directory}/logs/HEAD").st_size  # noqa: PTH116 - as above
    except OSError:
        return 0


def _logged(directory: str, start: int) -> list[str]:
    """Return the commits that the head moved to since its log had this length, latest first."""
    if _size(directory) == start:
        return []  # the usual case: nothing was appended
    try:
        with open(f"{directory}/logs/HEAD", "rb") as log:  # noqa: PTH123 - as above
            size = log.seek(0, os.SEEK_END)
            # If the log is shorter than before, it was rewritten: all of it is new.
            log.seek(max(start if start <= size else 0, size - _MOST_LOG))
            lines = log.read().splitlines()
    except OSError:
        return []
    if not lines:
        return []
    found = (_commit(line.partition(b" ")[2].partition(b" ")[0]) for line in reversed(lines))
    return [commit for commit in found if commit is not None]


@lru_cache(maxsize=64)
def _commit(said: bytes) -> str | None:
    commit = _text(said)
    return commit if _COMMIT.fullmatch(commit) and not _NOBODY.fullmatch(commit) else None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip()


def _read(path: str, longest: int = _LONGEST) -> bytes:
    """Return the content of a file; nothing if it is missing or larger than git would write it."""
    # A descriptor, because a file object costs more than reading a few bytes. Never cached by size and times: a write
    # through mapped memory may change neither.
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        at_once = min(longest, _MOST_LOG)
        data = piece = os.read(file, at_once)
        while len(piece) == at_once and len(data) < longest:
            piece = os.read(file, at_once)
            data += piece
    except OSError:
        return b""
    finally:
        os.close(file)
    return data if len(data) < longest else b""
