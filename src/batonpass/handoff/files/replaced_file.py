"""A file before a held call would replace it: recorded with the hold, so that both can be compared."""

import os
from enum import StrEnum

from msgspec import Struct

from batonpass.attribution.changes.line_diff import blocks_between
from batonpass.attribution.changes.sides import printable, repository_above
from batonpass.handoff.files.edited_files import path_inside, read_file
from batonpass.handoff.tools.whole_write import WholeWrite


class Stand(StrEnum):
    """The state of the file that a call would replace."""

    TEXT = "text"
    NONE = "none"  # no file: the call would make one
    BINARY = "binary"
    UNREAD = "unread"  # too large, no regular file, or nobody here may read it
    OUTSIDE = "outside"  # of the work tree, so nobody looked
    ELSEWHERE = "elsewhere"  # on another machine or in another program, so nobody could look


class StandingFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that a call would replace as a whole, as it was when the call was held."""

    path: str
    found: Stand
    text: str | None = None  # of a text, without secrets
    size: int | None = None  # in bytes, of a file that was read
    goes: int = 0  # how many of its lines go, and how many come, secrets included
    comes: int = 0


class LookedAt(Struct, frozen=True):
    """The record of a file, and its bytes: None if there is no file, or nobody read it."""

    file: StandingFile
    data: bytes | None = None

    @property
    def is_known(self) -> bool:
        """Return whether the bytes that would be replaced are known, or that there are none."""
        return self.data is not None or self.file.found is Stand.NONE


def look_elsewhere(write: WholeWrite) -> LookedAt:
    """Return the record of a file that is not on this machine."""
    return LookedAt(StandingFile(path=printable(write.path), found=Stand.ELSEWHERE, comes=len(split_lines(write.text))))


def look_at(write: WholeWrite, place: str | None) -> LookedAt:
    """Read the file that a call would replace, if it is in the work tree around a directory."""
    coming = split_lines(write.text)
    try:
        directory = os.path.realpath(os.getcwd() if place is None else place)  # noqa: PTH109 - a string, as its callers have
    except OSError:  # somebody removed the working directory: the call is held all the same
        return LookedAt(StandingFile(path=printable(write.path), found=Stand.UNREAD, comes=len(coming)))
    root = repository_above(directory) or directory
    path = None if _is_in_a_home(write.path) else path_inside(write.path, directory, root)
    if path is None:
        return LookedAt(StandingFile(path=printable(write.path), found=Stand.OUTSIDE, comes=len(coming)))
    name = printable(path.removeprefix(f"{root.rstrip('/')}/"))
    try:
        data = read_file(path)
    except OSError:
        return LookedAt(StandingFile(path=name, found=Stand.UNREAD, comes=len(coming)))
    if data is None:
        return LookedAt(StandingFile(path=name, found=Stand.NONE, comes=len(coming)))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return LookedAt(StandingFile(path=name, found=Stand.BINARY, size=len(data), comes=len(coming)), data)
    standing = split_lines(text)
    same = sum(block.size for block in blocks_between(standing, coming))
    return LookedAt(
        StandingFile(
            path=name,
            found=Stand.TEXT,
            text=text,
            size=len(data),
            goes=len(standing) - same,
            comes=len(coming) - same,
        ),
        data,
    )


def _is_in_a_home(path: str) -> bool:
    """Return whether a path begins with `~` and a tool may put a home in its place. Here it would be another file."""
    try:
        return path.startswith("~") and os.path.expanduser(path) != path  # noqa: PTH111 - of any text
    except ValueError:
        return True  # nobody has such a name


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with everything that is in them. A newline at the end begins an empty line."""
    return text.split("\n") if text else []
