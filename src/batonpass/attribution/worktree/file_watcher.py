"""Watches a tree for writes with inotify, so that a look costs as much as changed, not as much as exists.

Every directory is watched, because writing to a file leaves no trace on the directory. The kernel queues an event
before the writer continues, so everything a call did before it ended is noted. Not noticed: writes through a hard link
outside the tree, through memory that is still mapped, and by other machines. Therefore only local file systems are
watched.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

MOST_DIRECTORIES: Final = 20_000  # the user's limit on watches is shared with editors

_MODIFY, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED, _IS_DIRECTORY = 0x2000, 0x4000, 0x8000, 0x40000000
_ONLY_DIRECTORIES, _NO_LINKS = 0x01000000, 0x02000000
_MOVED: Final = _MOVED_FROM | _MOVED_TO
_WANTED: Final = (
    _MODIFY | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORIES | _NO_LINKS
)
_EVENT: Final = struct.Struct("iIII")
_BUFFER: Final = 1024 * 1024
_LOCAL: Final = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs", "xfs", "zfs")
)
_MOUNTS: Final = Path("/proc/self/mountinfo")


class UnwatchableError(Exception):
    """A tree cannot be watched; the message says why. It stays in this package: whole trees are compared instead."""


class Noted(Struct):
    """Events since the last call, by path from the root."""

    files: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)  # new, not watched yet
    lost: bool = False  # incomplete: the whole tree must be compared


class Watcher:
    """The directories of one tree, watched until closed. Raises `UnwatchableError` if that is impossible."""

    def __init__(self, root: Path) -> None:
        if (reason := _why_not(root)) is not None:
            raise UnwatchableError(reason)
        self._root = root
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._directories: dict[int, str] = {}
        self._process = os.getpid()
        self._queue = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            raise UnwatchableError(os.strerror(ctypes.get_errno()))

    def watch(self, start: str, *, without: Collection[str], ignored: Collection[str]) -> None:
        """Watch a directory and everything below it, except some names and some paths."""
        waiting = [start]
        while waiting:
            path = waiting.pop()
            # Watch before listing: a directory created in between is listed, or noted, or both.
            if self._add(path):
                waiting += _inner(self._root, path, without, ignored)

    def drain(self) -> Noted:
        """Return the events since the last call."""
        noted = Noted(lost=os.getpid() != self._process)  # after a fork both processes would take events from one queue
        while not noted.lost:
            try:
                events = os.read(self._queue, _BUFFER)
            except BlockingIOError:
                return noted
            except OSError:
                noted.lost = True
                return noted
            self._note(events, noted)
        return noted

    def close(self) -> None:
        """Stop watching."""
        queue, self._queue = self._queue, -1
        if queue >= 0:
            os.close(queue)

    def _add(self, path: str) -> bool:
        if len(self._directories) >= MOST_DIRECTORIES:
            raise UnwatchableError(f"more than {MOST_DIRECTORIES} directories")
        number: int = self._libc.inotify_add_watch(self._queue, os.fsencode(self._root / path), _WANTED)
        if number >= 0:
            self._directories[number] = path
            return True
        failed = ctypes.get_errno()
        if isinstance(error := OSError(failed, os.strerror(failed)), FileNotFoundError | NotADirectoryError):
            return False
        raise UnwatchableError(str(error))

    def _note(self, events: bytes, noted: Noted) -> None:
        at = 0
        while at < len(events):
            number, what, _, length = _EVENT.unpack_from(events, at)
            at += _EVENT.size + length
            name = os.fsdecode(events[at - length : at].rstrip(b"\0"))
            directory = self._directories.get(number)
            if what & _IGNORED:
                self._directories.pop(number, None)
            elif what & (_OVERFLOW | _UNMOUNT) or (what & _IS_DIRECTORY and what & _MOVED) or not (directory or name):
                noted.lost = True  # also if the root was removed
            elif directory is None or not name:
                continue
            else:
                path = f"{directory}/{name}" if directory else name
                if not what & _IS_DIRECTORY:
                    noted.files.add(path)
                elif what & _CREATE:
                    noted.directories.add(path)


def _inner(root: Path, path: str, without: Collection[str], ignored: Collection[str]) -> Iterator[str]:
    """Yield the directories directly below one, unless it is a repository of its own."""
    try:
        with os.scandir(root / path) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) or entry.name == ".git"]
    except OSError:
        return
    if path and ".git" in names:
        return
    for name in names:
        inner = f"{path}/{name}" if path else name
        if name != ".git" and name not in without and inner not in ignored:
            yield inner


def _why_not(root: Path) -> str | None:
    if sys.platform != "linux":
        return "watching needs Linux"
    try:
        mounts = [_mount(line) for line in _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()]
    except (OSError, IndexError, ValueError):
        return "the mounted file systems cannot be read"
    # Of several mounts at one place the last is visible; max() takes the first of equals.
    here = max(
        ((at, kind) for at, kind in reversed(mounts) if root.is_relative_to(at)), key=lambda mount: len(mount[0].parts)
    )
    below = [(at, kind) for at, kind in mounts if at != root and at.is_relative_to(root)]
    return next((f"{at} is a file system of type {kind}" for at, kind in [here, *below] if kind not in _LOCAL), None)


def _mount(line: str) -> tuple[Path, str]:
    fields = line.split(" ")
    place = fields[4].encode("utf-8", "surrogateescape").decode("unicode_escape").encode("latin-1")
    return Path(os.fsdecode(place)), fields[fields.index("-") + 1]
