"""A file before and after: which lines became others, and where it stands. Light, as every call is watched by it."""

import os
from pathlib import Path

from batonpass.attribution.changes.change import Hunk, lines_of
from batonpass.attribution.changes.line_diff import hunks_between


def hunks_of(before: bytes | None, after: bytes | None) -> tuple[Hunk, ...] | None:
    """Return which lines of a file became others; None if it is no text: then it has digests, and no lines."""
    try:
        return hunks_between(lines_of((before or b"").decode()), lines_of((after or b"").decode()))
    except UnicodeDecodeError:
        return None


def find_root(place: Path) -> Path:
    """Return the repository that a directory lies in; else the directory itself."""
    resolved = Path(os.path.realpath(place))
    return find_repository(resolved) or resolved


def find_repository(directory: Path) -> Path | None:
    """Return the git repository that a directory lies in."""
    found = repository_above(str(directory))
    return None if found is None else Path(found)


def repository_above(directory: str) -> str | None:
    """Return the same as text: this is asked before every call that changes something."""
    here, above = "", directory
    while above != here:
        here, above = above, above[: above.rfind("/") + 1].rstrip("/") or above[: above.startswith("/")]
        try:
            os.stat(f"{here.rstrip('/')}/.git")  # noqa: PTH116 - a text is given
        except (OSError, ValueError):
            continue
        return here
    return None


def printable(path: str) -> str:
    r"""Return a path as a record can hold it: a byte that is not UTF-8 is spelled \xff."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
