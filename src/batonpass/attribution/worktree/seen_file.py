"""A file as it was seen: its digest, and its bytes if they are few enough to keep.

A repeated look reads only changed files, which are recognised by their status. Two writes in one tick of the file
system's clock leave the same times, so a file that was read in the tick of its last change is read again.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from batonpass.attribution.changes.change import digest_of
from batonpass.attribution.worktree.plain_file import open_plain
from batonpass.model.base.ids import Digest

LARGEST_KEPT: Final = 2 * 1024 * 1024  # bytes; of a larger file only the digest is kept
LARGEST_READ: Final = 64 * 1024 * 1024  # bytes; of a larger file only the size is known

_SECOND: Final = 1_000_000_000
COARSE_TICK: Final = 2 * _SECOND  # FAT stores even seconds
_FINE_TICK: Final = _SECOND // 50  # kernels update the time every 1 to 10 ms
_CHUNK: Final = 1024 * 1024


class FileMark(NamedTuple):
    """The status of a file, which tells without reading whether it changed. The change time cannot be set back."""

    mtime: int
    ctime: int
    size: int
    inode: int
    mode: int
    names: int  # number of hard links


class SeenFile(Struct, frozen=True):
    """A file, or the target of a link, at one moment."""

    size: int
    digest: Digest | None = None  # None: too large, or not readable
    data: bytes | None = None  # None: too large to keep
    link: bool = False
    mark: FileMark | None = None
    settled: bool = True  # whether an equal mark proves that it is unchanged


def find_mark(path: Path | str) -> FileMark | None:
    """Return the mark of a file; None if it does not exist."""
    try:
        return _mark(os.lstat(path))
    except OSError:
        return None


def is_same(one: SeenFile | None, other: SeenFile | None) -> bool:
    """Return whether a file is the same at two moments; None is no file."""
    if one is None or other is None:
        return one is other
    if one.digest is None or other.digest is None:
        return one.digest == other.digest and one.mark == other.mark
    return one.digest == other.digest and one.link == other.link


def seen_bytes(data: bytes, *, link: bool = False, keep: bool = True) -> SeenFile:
    """Return a file whose bytes are known from elsewhere."""
    kept = data if keep and len(data) <= LARGEST_KEPT else None
    return SeenFile(size=len(data), digest=digest_of(data), data=kept, link=link)


def see(path: Path, known: SeenFile | None, *, keep: bool, now: Callable[[], int] = time.time_ns) -> SeenFile | None:
    """Return a file as it is now, or the known sight if unchanged; None if it does not exist. Does not follow links."""
    looked_at = now()  # first: a write from here on gets a later time, or the mark is not settled
    try:
        mark = _mark(path.lstat())
        if (
            known is not None
            and known.settled
            and known.mark == mark
            and (not keep or known.data is not None or known.size > LARGEST_KEPT)
        ):
            return known
        if stat.S_ISLNK(mark.mode):
            target = os.fsencode(path.readlink())
            return SeenFile(len(target), digest_of(target), target, link=True, mark=mark, settled=False)
        return _read(path, mark, keep=keep, settled=_is_settled(mark, looked_at)) if stat.S_ISREG(mark.mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        return SeenFile(size=0, mark=FileMark(0, 0, 0, 0, 0, 0))


def _read(path: Path, mark: FileMark, *, keep: bool, settled: bool) -> SeenFile:
    if mark.size > LARGEST_READ:
        return SeenFile(mark.size, mark=mark, settled=settled)
    # By now it may have become a link, or a pipe without a writer.
    with open_plain(path, follows=False) as file:
        if keep and mark.size <= LARGEST_KEPT:
            data = file.read(LARGEST_KEPT + 1)
            if len(data) <= LARGEST_KEPT:
                return SeenFile(len(data), digest_of(data), data, mark=mark, settled=settled)
            file.seek(0)
        sha, size = hashlib.sha256(), 0
        while size <= LARGEST_READ and (chunk := file.read(_CHUNK)):
            sha.update(chunk)
            size += len(chunk)
    return SeenFile(size, Digest(sha.hexdigest()) if size <= LARGEST_READ else None, mark=mark, settled=settled)


def _mark(status: os.stat_result) -> FileMark:
    return FileMark(
        status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode, status.st_nlink
    )


def _is_settled(mark: FileMark, looked_at: int) -> bool:
    whole_seconds = mark.mtime % _SECOND == 0 and mark.ctime % _SECOND == 0
    return looked_at - max(mark.ctime, mark.mtime) > (COARSE_TICK if whole_seconds else _FINE_TICK)
