"""The two sides of a file change and the repository of a path. Fast to import: it runs around every call."""

import os
from pathlib import Path

from batonpass.attribution.changes.change import Hunk, lines_of
from batonpass.attribution.changes.line_diff import hunks_between


def hunks_of(before: bytes | None, after: bytes | None) -> tuple[Hunk, ...] | None:
    """Return the hunks between two versions of a file; None if it is not text."""
    try:
        return hunks_between(lines_of((before or b"").decode()), lines_of((after or b"").decode()))
    except UnicodeDecodeError:
        return None


def find_root(place: Path) -> Path:
    """Return the repository that contains a directory, else the directory itself."""
    resolved = Path(os.path.realpath(place))
    return find_repository(resolved) or resolved


def find_repository(directory: Path) -> Path | None:
    """Return the git repository that contains a directory."""
    found = repository_above(str(directory))
    return None if found is None else Path(found)


def repository_above(directory: str) -> str | None:
    """Return the same as a string, without the cost of a Path: this runs before every call that may change files."""
    here, above = "", directory
    while above != here:
        here, above = above, above[: above.rfind("/") + 1].rstrip("/") or above[: above.startswith("/")]
        try:
            os.stat(f"{here.rstrip('/')}/.git")  # noqa: PTH116 - a string, for speed
        except (OSError, ValueError):
            continue
        return here
    return None


def printable(path: str) -> str:
    r"""Return a path that can be recorded: a byte that is not UTF-8 becomes \xff."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
